// @module-tag system
/** The console in a real browser, as people use it. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import type { HttpSettings } from "../../src/config/settings.ts";
import { openTestConsole } from "../support/console.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { installProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { startProgram } from "../support/program.ts";
import { makeRecord } from "../support/record.ts";
import { freePort } from "../support/redis-server.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, namedToken, pageSettings, plainSecret } from "../support/settings.ts";

const HOSTILE = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202E`;
const TOKEN = "console-Token:1-0";
const CLOSED = transferPlan({ trackingId: "closed", password: "unknown" });
const ACTING = { actions: true, tokens: namedToken(plainSecret(TOKEN)) };

describe("the console", () => {
  test("follows an arriving transfer without a reload", async () => {
    const { simulator, url } = await start({});
    const { page, complaints } = await openBrowser(url);
    await expect.poll(() => page.locator("#headline").innerText()).toContain("All is well");
    await page.evaluate("document.body.setAttribute('data-same', 'page')");
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 50_000, pauseMs: 100 } });
    const files = [{ name: "a.bin", generate: { bytes: 1_000_000 } }];
    simulator.addTransfer(transferPlan({ trackingId: "arrives", files }));
    await expect.poll(() => page.locator("#downloading progress").count()).toBe(1);
    await expect.poll(() => page.locator("#downloading").innerText()).toMatch(/KiB of 977 KiB/);
    const recent = page.locator("#recent");
    await expect.poll(() => recent.innerText()).toContain(`${MAILBOX}/anna@supplier.example/arrives`);
    expect(await recent.innerText()).toContain("Order 4711 · 1 file, 977 KiB");
    await expect.poll(() => page.locator("#live").innerText()).toContain("live");
    expect(await page.locator("body").getAttribute("data-same")).toBe("page");
    expect(complaints).toEqual([]);
  });

  test("keeps a page up to date while all event streams are taken, and follows events when there is room again", async () => {
    const { url, board } = await openTestConsole(0);
    const left = new AbortController();
    onTestFinished(() => left.abort());
    const ask = () => fetch(`${url}api/events`, { signal: left.signal });
    const taken = await Promise.all(Array.from({ length: 20 }, ask));
    expect(taken.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const { page } = await openBrowser(url);
    const live = page.locator("#live");
    const record = makeRecord({ trackingId: "arrives", state: "waiting", reason: "retry" });
    board.listener({ type: "transfer-changed", record, fault: undefined });
    await expect.poll(() => page.locator("#headline").innerText(), { timeout: 15_000 }).toContain("1 queued");
    expect([await live.innerText(), await page.title()]).toEqual([
      expect.not.stringContaining("live"),
      expect.not.stringContaining("No answer"),
    ]);
    left.abort();
    await expect.poll(() => live.innerText(), { timeout: 15_000 }).toContain("live");
  });

  test("groups transfers that need attention by cause, with the command that helps", async () => {
    const files = [{ name: "a", text: "x", csvChecksum: "wrong" } as const];
    const transfers = [CLOSED, transferPlan({ trackingId: "wrong", files })];
    const { url } = await start({ transfers }, {}, { closed: "waiting", wrong: "quarantined" });
    const { page } = await openBrowser(url);
    expect(await page.title()).toMatch(/^2 transfers need attention – Inlet on /);
    const causes = page.locator(".cause h3");
    expect((await causes.allInnerTexts()).toSorted()).toEqual([
      expect.stringContaining("In quarantine (CHECKSUM_MISMATCH) 1"),
      expect.stringContaining("Needs a password 1"),
    ]);
    await page.locator(".row", { hasText: "closed" }).locator("summary").click();
    expect(await page.locator("#attention").innerText()).toContain("inlet password closed");
    await page.getByRole("link", { name: "Needs a password" }).click();
    await expect.poll(() => page.url()).toContain("transfers?group=attention&state=waiting&reason=password");
    expect(await page.locator(".row").count()).toBe(1);
    await page.locator(".row summary").click();
    await page.getByRole("link", { name: "Whole story" }).click();
    await expect.poll(() => page.locator("#story").innerText()).toContain("1 of 3 attempts spent");
    expect(await page.locator("#rounds").innerText()).toMatch(/discovered\s+open/);
  });

  test("needs no script", async () => {
    const transfers = [transferPlan({ trackingId: "t1" }), CLOSED];
    const { url, daemon } = await start({ transfers }, ACTING, { t1: "delivered", closed: "waiting" });
    const { page } = await openBrowser(url, { javaScriptEnabled: false });
    expect(await page.locator("#recent").innerText()).toContain("anna@supplier.example/t1");
    await signIn(page);
    await page.getByRole("link", { name: "Transfers", exact: true }).click();
    await page.getByText("More filters").click();
    await page.getByRole("searchbox", { name: "Sender" }).fill("anna@*");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByLabel("Select closed").check();
    await page.getByRole("button", { name: "Discard" }).first().click();
    await expect.poll(() => daemon.stateOf("closed")).toBe("gone");
    await page.getByRole("link", { name: "History", exact: true }).click();
    await page.getByRole("searchbox", { name: "Text" }).fill("anna");
    await page.getByRole("button", { name: "Search" }).click();
    expect(await page.locator("#past tbody tr").count()).toBe(2);
    expect(await page.locator("#chart figcaption").innerText()).toContain("1 delivered");
  });

  test("works with the keyboard alone, and updates do not move the focus or close a row", async () => {
    const { url, simulator } = await start({ transfers: [CLOSED] }, {}, { closed: "waiting" });
    const { page } = await openBrowser(url);
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").innerText()).toContain("Skip to the content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("location.hash")).toBe("#main");
    for (let tabs = 0; tabs < 20; tabs++) {
      if ((await page.locator(".row summary:focus").count()) === 1) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    expect(await page.locator(".row details[open]").count()).toBe(1);
    simulator.addTransfer(transferPlan({ trackingId: "closed2", password: "unknown" }));
    await expect.poll(() => page.locator(".row").count()).toBe(2);
    expect(await page.locator(".row details[open] summary:focus").innerText()).toContain("closed");
  });

  test.each([
    { width: 360, colorScheme: "dark" },
    { width: 1400, colorScheme: "light" },
  ] as const)("fits a screen of $width pixels in $colorScheme mode, with enough contrast", async (screen) => {
    const { width, colorScheme } = screen;
    const long = `long-${"x".repeat(150)}`;
    const closed = transferPlan({ trackingId: long, password: "unknown" });
    const transfers = [transferPlan({ trackingId: "t1" }), closed];
    const { url } = await start({ transfers }, ACTING, { t1: "delivered", [long]: "waiting" });
    const { page } = await openBrowser(url, { viewport: { width, height: 800 }, colorScheme });
    await signIn(page);
    const story = new URLSearchParams({ mailbox: MAILBOX, trackingId: long });
    for (const path of ["", "transfers", "mailboxes", "history", `transfer?${story}`]) {
      await page.goto(url + path);
      expect([path, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([path, width]);
      // No table is cut, and screen readers announce one region.
      const isCut = "[...document.querySelectorAll('.scroll')].some((it) => it.scrollWidth > it.clientWidth)";
      expect([path, await page.evaluate(isCut)]).toEqual([path, false]);
      expect(await page.locator("[role=status], [role=alert], [aria-live]").count()).toBe(1);
      const texts = ".facts, .since, .nothing, .tone, .what, .when, dt, a, nav a[aria-current], .count";
      expect(await leastContrast(page, texts)).toBeGreaterThan(4.5);
    }
  });

  test("I5 no escape: a sender's text stays text, and runs nothing", async () => {
    const files = [{ name: HOSTILE, text: "x", csvChecksum: "wrong" } as const];
    const transfers = [
      transferPlan({ trackingId: "t1", from: HOSTILE, subject: HOSTILE, password: "unknown" }),
      transferPlan({ trackingId: "t2", subject: HOSTILE, files }),
      transferPlan({ trackingId: "t3", subject: HOSTILE }),
    ];
    const { url } = await start({ transfers }, ACTING, { t1: "waiting", t2: "quarantined", t3: "delivered" });
    const { page, complaints } = await openBrowser(url);
    await signIn(page);
    const story = new URLSearchParams({ mailbox: MAILBOX, trackingId: "t2" });
    for (const path of ["", "transfers", "history", `transfer?${story}`]) {
      await page.goto(url + path);
      await expect.poll(() => page.locator("#live").innerText()).toContain("live");
      expect(await page.locator("main").innerHTML()).toContain("&lt;img src=x");
      expect(await page.locator("main img").count()).toBe(0);
      expect(await page.title()).not.toContain("owned");
    }
    expect(complaints).toEqual([]);
  });

  test("says within seconds that a frozen or stopped daemon no longer answers", async () => {
    const port = await freePort();
    const { simulator, config } = await install({}, { http: { listen: `127.0.0.1:${port}` } });
    const daemon = startProgram(["run", "--config", config]);
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    const { page } = await openBrowser(`http://127.0.0.1:${port}/`);
    const silence = page.locator("#silence");
    expect(await silence.isVisible()).toBe(false);
    daemon.kill("SIGSTOP");
    await expect.poll(() => silence.isVisible()).toBe(true);
    expect(await silence.innerText()).toContain("No answer from Inlet since");
    expect(await page.title()).toMatch(/^⚠ No answer/);
    daemon.kill("SIGCONT");
    await expect.poll(() => silence.isVisible()).toBe(false);
    expect(await page.title()).not.toContain("No answer");
    daemon.kill("SIGTERM");
    await expect.poll(() => silence.isVisible()).toBe(true);
  });
});

describe("acting through the console", () => {
  test("a supplied password continues the transfer, and each outcome is shown at its row", async () => {
    const ids = ["k-first", "k-second"];
    const transfers = ids.map((trackingId) => transferPlan({ trackingId, password: "the-Right:1" }));
    const waiting = { "k-first": "waiting", "k-second": "waiting" };
    const { url, daemon } = await start({ transfers }, ACTING, waiting);
    const { page, complaints } = await openBrowser(url);
    expect(await page.locator("#attention form").count()).toBe(0);
    await signIn(page);
    await supply(page, "k-first", "not-Right:1");
    const row = page.locator(".row", { hasText: "k-first" });
    await expect.poll(() => row.locator(".outcome").innerText()).toContain("Supply password by anna");
    await expect.poll(() => row.locator(".outcome.attention").count()).toBe(1);
    await supply(page, "k-second", "the-Right:1");
    await expect.poll(() => daemon.stateOf("k-second")).toBe("delivered");
    await expect.poll(() => page.locator("#problems").innerText()).toContain("k-second was delivered to");
    await expect.poll(() => page.locator("#recent").innerText()).toContain("k-second");
    // Only a password helps: there is nothing to retry.
    expect(await row.getByRole("button", { name: "Retry" }).count()).toBe(0);
    expect(complaints.filter((text) => !text.includes("[DOM]"))).toEqual([]);
  });

  test("by another host name over plain HTTP, a wrong token is refused, and the right one signs in and out", async () => {
    const { url } = await start({}, { ...ACTING, hosts: ["inbox.example.com"] });
    const { page } = await openBrowser(`${url.replace("127.0.0.1", "inbox.example.com")}mailboxes`);
    await page.getByLabel("Token").fill("wrong");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator(".notice").innerText()).toBe("The token is wrong.");
    await signIn(page);
    expect(await page.locator("header").innerText()).toContain("Signed in as anna");
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect.poll(() => page.getByLabel("Token").count()).toBe(1);
  });

  test("an action without a transfer, or after the session is over, says so where it can be seen", async () => {
    const { url, daemon } = await start({ transfers: [CLOSED] }, ACTING, { closed: "waiting" });
    const { page } = await openBrowser(`${url}transfers`);
    await signIn(page);
    // The page may renew itself at the moment of a click, which is lost then.
    const discard = async (expected: string) => {
      const read = async () => (await page.locator(".notice").allInnerTexts()).join();
      const button = page.getByRole("button", { name: "Discard" }).first();
      if (!(await read()).includes(expected)) await button.click({ timeout: 10_000 }).catch(() => {});
      return read();
    };
    await expect.poll(() => discard("transfer")).toContain("transfer");
    await page.getByLabel("Select closed").check();
    // Else the page may fetch itself first, and show the sign-in instead of the button.
    await page.route(`${url}transfers`, (route) =>
      route.request().resourceType() === "fetch" ? route.abort() : route.continue(),
    );
    await page.context().clearCookies();
    await expect.poll(() => discard("Sign in first")).toContain("Sign in first");
    await signIn(page);
    expect(daemon.stateOf("closed")).toBe("waiting");
  });

  test.each([true, false])(
    "transfers in quarantine are released, retried and discarded; script: %s",
    async (javaScriptEnabled) => {
      const wrong = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
      const ids = ["t1", "t2", "t3"];
      const quarantined = ids.map((trackingId) => transferPlan({ trackingId, files: wrong }));
      const transfers = [...quarantined, transferPlan({ trackingId: "t4" })];
      const states = Object.fromEntries(ids.map((id) => [id, "quarantined"]));
      const { url, daemon, simulator } = await start({ transfers }, ACTING, states);
      const { page, complaints } = await openBrowser(url, { javaScriptEnabled });
      await signIn(page);
      const open = async (id: string) => {
        const row = page.locator(".row").filter({ hasText: id });
        if ((await row.locator("> details[open]").count()) === 0)
          await row.locator("summary").first().click();
        return row;
      };
      const first = await open("t1");
      await first.locator("summary", { hasText: "Release" }).click();
      await first.getByRole("button", { name: "Release" }).click();
      await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
      const asked = simulator.totals().file;
      await (await open("t2")).getByRole("button", { name: "Retry" }).click();
      await expect.poll(() => simulator.totals().file).toBeGreaterThan(asked);
      const third = await open("t3");
      await third.locator("summary", { hasText: "Discard" }).click();
      await third.getByRole("button", { name: "Discard" }).click();
      await expect.poll(() => daemon.stateOf("t3")).toBe("gone");
      await page.goto(`${url}transfer?${new URLSearchParams({ mailbox: MAILBOX, trackingId: "t4" })}`);
      await page.locator("summary", { hasText: "Deliver again" }).click();
      await page.getByRole("button", { name: "Deliver again" }).click();
      const isDelivery = (it: { trackingId: string; state: string }) =>
        it.trackingId === "t4" && it.state === "delivered";
      await expect.poll(() => daemon.changes.filter(isDelivery).length).toBe(2);
      expect(complaints.filter((text) => !text.includes("[DOM]"))).toEqual([]);
    },
  );

  test("one password opens all transfers of a sender, and all that match are discarded after a question", async () => {
    const from = (sender: string, prefix: string) =>
      Array.from({ length: 4 }, (_, at) =>
        transferPlan({ trackingId: `${prefix}${at}`, from: sender, password: "the-Right:1" }),
      );
    const transfers = [...from("a@one.example", "a"), ...from("b@two.example", "b")];
    const { url, daemon } = await start({ transfers }, ACTING);
    const statesOf = (prefix: string) => [0, 1, 2, 3].map((at) => daemon.stateOf(`${prefix}${at}`));
    await expect.poll(() => [...statesOf("a"), ...statesOf("b")]).toEqual(Array(8).fill("waiting"));
    const { page } = await openBrowser(url);
    await signIn(page);
    await page.goto(`${url}transfers?sender=*@one.example`);
    await page.getByLabel("Select this page").check();
    await page.getByRole("button", { name: "Supply password" }).first().click();
    await page.getByLabel("Their password").fill("the-Right:1");
    await page.getByRole("button", { name: "Supply password: 4 transfers" }).click();
    await expect.poll(() => statesOf("a")).toEqual(Array(4).fill("delivered"));
    await expect.poll(() => page.locator("#batches").innerText()).toContain("4 transfers: 4 done");
    await page.goto(`${url}transfers?sender=b@*&size=2`);
    await page.getByLabel("All 4 that match").check();
    await page.getByRole("button", { name: "Discard" }).first().click();
    await expect.poll(() => page.locator("main").innerText()).toContain("Discard: 4 transfers");
    expect(statesOf("b")).toEqual(Array(4).fill("waiting"));
    await page.getByRole("button", { name: "Discard: 4 transfers" }).click();
    await expect.poll(() => statesOf("b")).toEqual(Array(4).fill("gone"));
  });
});

test.each([3, 300, 5_000])(
  "with %i open transfers, the pages stay short and the first to expire is first",
  async (count) => {
    const { url } = await openTestConsole(count);
    const { page, complaints } = await openBrowser(url);
    const attention = Number(await page.locator("#attention h2 .count").innerText());
    expect(attention).toBeGreaterThan(0);
    // Each cause shows its most urgent transfers, and leads to the rest.
    expect(await page.locator("#attention .row").count()).toBeLessThanOrEqual(30);
    expect(await page.locator("#attention .row .id").first().innerText()).toBe("T-0");
    // One outage is one problem.
    expect(await page.locator(".trouble").count()).toBe(count > 10 ? 1 : 0);
    expect((await page.content()).length).toBeLessThan(150_000);
    await page.goto(`${url}transfers?group=attention`);
    expect(await page.locator("#found h2 .count").innerText()).toBe(String(attention));
    expect(await page.locator(".row").count()).toBe(Math.min(50, attention));
    const pages = Math.ceil(attention / 50);
    if (pages > 1) {
      await page.getByRole("link", { name: "Last" }).click();
      await expect.poll(() => page.locator(".pager").innerText()).toContain(`Page ${pages} of ${pages}`);
    }
    await page.goto(`${url}transfers?text=T-2`);
    await expect.poll(() => page.locator(".row .id").first().innerText()).toContain("T-2");
    expect(complaints).toEqual([]);
  },
);

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect.poll(() => page.getByRole("button", { name: "Sign out" }).count()).toBe(1);
}

async function supply(page: Page, id: string, password: string): Promise<void> {
  const row = page.locator(".row", { hasText: id });
  if ((await row.locator("> details[open]").count()) === 0) await row.locator("summary").first().click();
  await page.getByLabel(`Password of ${id}`).fill(password);
  await row.getByRole("button", { name: "Supply password" }).click();
}

/** Returns when the transfers are in these states. */
async function start(
  scenario: Scenario,
  http: Partial<HttpSettings> = {},
  states: Readonly<Record<string, string>> = {},
) {
  const simulator = await openTestSimulator(scenario);
  const daemon = startDaemon(
    await daemonSettings([mailboxSettings(simulator, { passwordAttempts: 3 })], { http: pageSettings(http) }),
  );
  const now = () => Object.fromEntries(Object.keys(states).map((id) => [id, daemon.stateOf(id)]));
  await expect.poll(now).toEqual(states);
  return { simulator, daemon, url: await daemon.page };
}

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  // A foreign host name, and no secure context for the browser.
  "--host-resolver-rules=MAP inbox.example.com 127.0.0.1",
];

/**
 * A headless browser, which ends with the test. `complaints`: console warnings and errors, including violations of the
 * content security policy.
 */
async function openBrowser(url: string, options: BrowserContextOptions = {}) {
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
async function leastContrast(page: Page, selector: string): Promise<number> {
  const script = readFileSync(join(ROOT, "test/support/contrast.js"), "utf8");
  return page.evaluate(`${script}\nleastContrast(${JSON.stringify(selector)})`);
}
