-- wrk script: POST one body to every request.  Arguments: BODY_FILE CONTENT_TYPE
function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  wrk.headers["Content-Type"] = args[2]
  file:close()
end
