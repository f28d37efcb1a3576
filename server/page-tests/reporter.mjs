// Prints the tests that fail, with their reasons, and the count of both kinds at the end.

export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    const isGroup = data?.details?.type === "suite" || data?.skip !== undefined;
    const isFile = data?.name?.endsWith?.(".mjs");
    if (type === "test:pass" && !isGroup && !isFile) passed += 1;
    if (type === "test:fail" && !isGroup && !(isFile && data.details.error?.failureType === "subtestsFailed")) {
      failed += 1;
      const error = data.details.error?.cause ?? data.details.error;
      yield `FAILED ${data.name}\n${String(error?.stack ?? error).split("\n").slice(0, 25).map((line) => `    ${line}`).join("\n")}\n`;
    }
    if (type === "test:stderr") yield data.message;
  }
  yield `${passed} passed, ${failed} failed\n`;
}
