-- wrk script: POST one body to every request.  Arguments: BODY_FILE LENGTH_OF_ITS_JSON, 0 where it is all JSON
function init(args)
  local file = assert(io.open(args[1], "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  if args[2] ~= "0" then
    wrk.headers["Inference-Header-Content-Length"] = args[2]
  end
  file:close()
end
