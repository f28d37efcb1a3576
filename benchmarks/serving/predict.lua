-- Requests of wrk: the lines of the file TEXTS one after the other, each an object with "text".
local bodies = {}
for line in io.lines(os.getenv("TEXTS")) do
    bodies[#bodies + 1] = line
end
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
    at = at % #bodies + 1
    return wrk.format(nil, "/v1/predict", nil, bodies[at])
end
