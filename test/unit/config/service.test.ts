import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readServiceSettings } from "../../../src/config/service.ts";
import { makeFolder } from "../../support/program.ts";

const BASE = { INLET_SERVICE__BASEURL: "https://transfer.example.com/base" };

describe("the service as the environment describes it", () => {
  test("has sensible defaults", async () => {
    const settings = await readServiceSettings(BASE, undefined);
    expect(settings.baseUrl.href).toBe("https://transfer.example.com/base");
    expect(settings).toMatchObject({
      acceptLanguage: "en",
      timeoutMs: 30_000,
      clientId: undefined,
      ca: undefined,
    });
    expect(settings.proxy).toEqual({ http: "", https: "", except: "" });
  });

  test("is reached through the proxy of the environment, or the one of its own", async () => {
    const env = {
      ...BASE,
      HTTPS_PROXY: "http://a",
      https_proxy: "http://b",
      NO_PROXY: "x.example",
      HTTP_PROXY: "http://c",
    };
    expect((await readServiceSettings(env, undefined)).proxy).toEqual({
      http: "http://c",
      https: "http://b",
      except: "x.example",
    });
    const own = { ...env, INLET_SERVICE__PROXY: "http://own" };
    expect((await readServiceSettings(own, undefined)).proxy).toEqual({
      http: "http://own",
      https: "http://own",
      except: "",
    });
  });

  test("hides its secrets", async () => {
    const clientId = "C".repeat(64);
    const env = { ...BASE, INLET_SERVICE__CLIENTID: clientId, INLET_SERVICE__VERIFICATION__TOKEN: "t0ken" };
    const settings = await readServiceSettings(env, undefined);
    expect(JSON.stringify(settings)).not.toMatch(/CCCC|t0ken/);
    expect(settings.clientId?.reveal()).toBe(clientId);
  });

  test("may use plain http on this machine, elsewhere only when told to", async () => {
    for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
      expect((await readServiceSettings({}, `http://${host}:8080`)).baseUrl.hostname).toBe(host);
    }
    for (const host of ["example.com", "localhost.example.com", "128.0.0.1", "[::2]"]) {
      await expect(readServiceSettings({}, `http://${host}`)).rejects.toMatchObject({
        code: "CONFIG_INVALID",
      });
      expect(await readServiceSettings({ INLET_SERVICE__ALLOWHTTP: "true" }, `http://${host}`)).toBeDefined();
    }
  });

  test("may name files with certificates", async () => {
    const ca = join(await makeFolder(), "ca.pem");
    await writeFile(ca, "PEM");
    expect((await readServiceSettings({ ...BASE, INLET_SERVICE__CA: ca }, undefined)).ca).toBe("PEM");
  });

  test.each([
    ["250ms", 250],
    ["1.5s", 1500],
    ["2m", 120_000],
    ["1h", 3_600_000],
  ])("waits for %s", async (text, timeoutMs) => {
    const env = { ...BASE, INLET_SERVICE__TIMEOUT: text };
    expect((await readServiceSettings(env, undefined)).timeoutMs).toBe(timeoutMs);
  });
});
