/** A headless browser, which ends with the test. */
import { readFileSync } from "node:fs";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { installProgram } from "./debian.ts";

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  // A foreign host name, and no secure context for the browser.
  "--host-resolver-rules=MAP inbox.example.com 127.0.0.1",
];

export interface TestPage {
  readonly page: Page;
  /** Console warnings and errors, including violations of the content security policy. */
  readonly complaints: readonly string[];
}

export async function openBrowser(url: string, options: BrowserContextOptions = {}): Promise<TestPage> {
  const browser = await chromium.launch({
    executablePath: await installProgram("chromium", "chromium"),
    args: ARGUMENTS,
  });
  onTestFinished(() => browser.close());
  const page = await (await browser.newContext(options)).newPage();
  // As patient as `expect.poll`: a busy machine is slow.
  page.setDefaultTimeout(120_000);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, complaints };
}

/** The lowest contrast between these texts and their background, by the WCAG formula. */
export async function leastContrast(page: Page, selector: string): Promise<number> {
  const script = readFileSync(new URL("contrast.js", import.meta.url), "utf8");
  return page.evaluate(`${script}\nleastContrast(${JSON.stringify(selector)})`);
}
