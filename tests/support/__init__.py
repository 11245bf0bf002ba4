"""What the tests share: real servers, real clients, and the check after every fault."""
