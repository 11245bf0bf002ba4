-- wrk script: POST one body to every request.  Arguments: BODY_FILE CONTENT_TYPE [SECRET or -] [close]
function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  wrk.headers["Content-Type"] = args[2]
  if args[3] and args[3] ~= "-" then
    wrk.headers["Authorization"] = "Bearer " .. args[3]
  end
  if args[4] == "close" then
    wrk.headers["Connection"] = "close"
  end
  file:close()
end
