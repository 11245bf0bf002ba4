WORD = "shared"
