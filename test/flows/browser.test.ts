/** The console in a real browser, as people use it. */
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import type { HttpSettings } from "../../src/config/settings.ts";
import { leastContrast, openBrowser } from "../support/browser.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, pageSettings, plainSecret } from "../support/settings.ts";

const HOSTILE = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>\u202E`;

describe("the console", () => {
  test("follows an arriving transfer without a reload", async () => {
    const { simulator, url } = await start({});
    const { page, complaints } = await openBrowser(url);
    await expect.poll(() => page.locator("#summary").innerText()).toContain("All is well");
    await page.evaluate("document.body.setAttribute('data-same', 'page')");
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 50_000, pauseMs: 100 } });
    const files = [{ name: "a.bin", generate: { bytes: 1_000_000 } }];
    simulator.addTransfer(transferPlan({ trackingId: "arrives", files }));
    await expect.poll(() => page.locator("#in-hand progress").count()).toBe(1);
    await expect.poll(() => page.locator("#in-hand").innerText()).toMatch(/KiB of 977 KiB/);
    await expect
      .poll(() => page.locator("#recent").innerText())
      .toContain(`${MAILBOX}/anna@supplier.example/arrives`);
    await expect.poll(() => page.locator("#live").innerText()).toContain("live");
    expect(await page.locator("body").getAttribute("data-same")).toBe("page");
    expect(complaints).toEqual([]);
  });

  test("first shows transfers that need attention, with the command that helps", async () => {
    const { url, daemon } = await start({
      transfers: [transferPlan({ trackingId: "closed", password: "unknown" })],
    });
    await expect.poll(() => daemon.stateOf("closed")).toBe("waiting");
    const { page } = await openBrowser(url);
    expect(await page.title()).toMatch(/^1 transfer needs attention – Inlet on /);
    const [first] = await page.locator("main section").all();
    expect(await first?.innerText()).toContain("inlet password closed");
  });

  test("needs no script", async () => {
    const { url, daemon } = await start({ transfers: [transferPlan({ trackingId: "t1" })] });
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    const { page } = await openBrowser(url, { javaScriptEnabled: false });
    expect(await page.locator("#recent").innerText()).toContain("anna@supplier.example/t1");
    await page.locator("input[type=search]").fill("anna");
    await page.locator("form button").click();
    expect(await page.locator("#history tbody tr").count()).toBe(1);
    expect(await page.locator("#history").innerText()).toContain("delivered");
  });

  test("works with the keyboard alone, and updates do not move the focus", async () => {
    const { url, simulator, daemon } = await start({ transfers: [transferPlan({ trackingId: "t1" })] });
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    const { page } = await openBrowser(url);
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").innerText()).toContain("Skip to transfers that need attention");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("location.hash")).toBe("#attention");
    for (let tabs = 0; tabs < 20; tabs++) {
      if ((await page.locator("input[type=search]:focus").count()) === 1) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.type("t1");
    simulator.addTransfer(transferPlan({ trackingId: "t2" }));
    await expect.poll(() => page.locator("#recent").innerText()).toContain("/t2");
    await page.keyboard.type(" ");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator("#history tbody tr").count()).toBe(1);
  });

  test("fits a phone with rows as cards, and works in dark mode", async () => {
    const { url, daemon } = await start({
      transfers: [
        transferPlan({ trackingId: "t1" }),
        transferPlan({ trackingId: `long-${"x".repeat(150)}`, password: "unknown" }),
      ],
    });
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    const viewport = { width: 400, height: 800 };
    const { page } = await openBrowser(url, { viewport, colorScheme: "dark" });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(400);
    const beyond =
      "[...document.querySelectorAll('.scroll')].filter((it) => it.scrollWidth > it.clientWidth).length";
    expect(await page.evaluate(beyond)).toBe(0);
    const sender = page.locator("#recent td[data-column=Sender] .cell");
    // On one line.
    expect((await sender.first().boundingBox())?.height).toBeLessThan(30);
    expect(await leastContrast(page, ".facts, .since, .nothing, figcaption span")).toBeGreaterThan(4.5);
  });

  test("I5 no escape: a sender's text stays text, and runs nothing", async () => {
    const { url, daemon } = await start({
      transfers: [
        transferPlan({ trackingId: "t1", from: HOSTILE, subject: HOSTILE, password: "unknown" }),
        transferPlan({
          trackingId: "t2",
          subject: HOSTILE,
          files: [{ name: HOSTILE, text: "x", csvChecksum: "wrong" }],
        }),
      ],
    });
    await expect.poll(() => [daemon.stateOf("t1"), daemon.stateOf("t2")]).toEqual(["waiting", "quarantined"]);
    const { page, complaints } = await openBrowser(url);
    await expect.poll(() => page.locator("#live").innerText()).toContain("live");
    expect(await page.locator("main").innerText()).toContain("<img src=x");
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).not.toContain("owned");
    expect(complaints).toEqual([]);
  });
});

describe("acting through the page", () => {
  const ACTING = { actions: true, token: plainSecret("page-Token:1") };

  test("a supplied password continues the transfer", async () => {
    const { url, daemon } = await start(
      { transfers: [transferPlan({ trackingId: "closed", password: "the-Right:1" })] },
      ACTING,
    );
    await expect.poll(() => daemon.stateOf("closed")).toBe("waiting");
    const { page, complaints } = await openBrowser(url);
    expect(await page.locator("#attention form").count()).toBe(0);
    await page.locator("#sign-in input[type=password]").fill("page-Token:1");
    await page.keyboard.press("Enter");
    await page.getByLabel("Password of closed").fill("the-Right:1");
    await page.getByRole("button", { name: "Supply" }).click();
    await expect.poll(() => daemon.stateOf("closed")).toBe("delivered");
    expect(await page.locator(".notice").innerText()).toBe("The password of closed is being tried.");
    await expect.poll(() => page.locator("#recent").innerText()).toContain("closed");
    expect(complaints).toEqual([]);
  });

  test("by another host name over plain HTTP, a wrong token is refused, and the right one signs in and out", async () => {
    const { url } = await start({}, { ...ACTING, hosts: ["inbox.example.com"] });
    const { page } = await openBrowser(url.replace("127.0.0.1", "inbox.example.com"));
    await page.locator("#sign-in input[type=password]").fill("wrong");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.getByRole("alert").innerText()).toBe("The token is wrong.");
    await page.locator("#sign-in input[type=password]").fill("page-Token:1");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect.poll(() => page.locator("#sign-in").count()).toBe(1);
  });

  test.each([true, false])(
    "transfers in quarantine are released, retried and discarded; script: %s",
    async (javaScriptEnabled) => {
      const wrong = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
      const ids = ["t1", "t2", "t3"];
      const transfers = ids.map((trackingId) => transferPlan({ trackingId, files: wrong }));
      const { url, daemon, simulator } = await start({ transfers }, ACTING);
      await expect.poll(() => ids.map((id) => daemon.stateOf(id))).toEqual(Array(3).fill("quarantined"));
      const { page, complaints } = await openBrowser(url, { javaScriptEnabled });
      await page.locator("#sign-in input[type=password]").fill("page-Token:1");
      await page.keyboard.press("Enter");
      const card = (id: string) => page.locator(".card").filter({ hasText: id });
      await card("t1").locator("summary", { hasText: "Release" }).click();
      await card("t1").getByRole("button", { name: "Release" }).click();
      await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
      const asked = simulator.totals().file;
      await card("t2").getByRole("button", { name: "Try now" }).click();
      await expect.poll(() => simulator.totals().file).toBeGreaterThan(asked);
      await card("t3").locator("summary", { hasText: "Discard" }).click();
      await card("t3").getByRole("button", { name: "Discard" }).click();
      await expect.poll(() => daemon.stateOf("t3")).toBe("gone");
      expect(complaints).toEqual([]);
    },
  );
});

async function start(scenario: Scenario, http: Partial<HttpSettings> = {}) {
  const simulator = await openTestSimulator(scenario);
  const daemon = startDaemon(
    await daemonSettings([mailboxSettings(simulator)], { http: pageSettings(http) }),
  );
  return { simulator, daemon, url: await daemon.page };
}
