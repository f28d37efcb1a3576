-- Asks for the labels of one text after the other; the file in TEXTS has a JSON object with a "text" per line.
local bodies = {}
for line in io.lines(os.getenv("TEXTS")) do
  -- The string behind "text" goes into the request as it is written: escapes and all.
  local text = line:match('"text"%s*:%s*(".-[^\\]")')
  if text then
    bodies[#bodies + 1] = '{"text": ' .. text .. "}"
  end
end
local headers = { ["Content-Type"] = "application/json" }
local at = 0

request = function()
  at = at % #bodies + 1
  return wrk.format("POST", "/v1/predict", headers, bodies[at])
end
