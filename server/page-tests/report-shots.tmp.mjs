import { openPage, startBrowser } from "./browser.mjs";
const [file, folder] = process.argv.slice(2);
const { browser, stop } = await startBrowser();
for (const [width, dark] of [[1280, false], [400, false], [1280, true], [400, true]]) {
  const { page, context, seen } = await openPage(browser, `file://${file}`, "", { width, height: width === 400 ? 800 : 950, dark });
  const name = `${folder}/report-${width}${dark ? "-dark" : ""}`;
  await page.screenshot({ path: `${name}.png` });
  for (const id of ["quality", "labels", "data", "hardest", "scores", "edges", "paper"]) {
    const node = page.locator(`#s-${id}`);
    const box = await node.boundingBox();
    if (box && box.height < 2600) await node.screenshot({ path: `${name}-${id}.png` });
  }
  console.log(width, dark, await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]), seen.errors);
  await context.close();
}
await stop();
