import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { loadService, type ServiceOptions } from "../../../src/config/load.ts";
import type { ServiceSettings } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";
import { CA } from "../../support/tls.ts";
import { faultMessage, NOWHERE, writeConfig } from "./stage.ts";

const BASE = { INLET_SERVICE__BASEURL: "https://transfer.example.com/base" };

function load(options: ServiceOptions): Promise<ServiceSettings> {
  return loadService({ defaultPaths: [NOWHERE], ...options });
}

test("the service in the environment sees a configured name of Inlet, and gets lists of file ids as it wants them", async () => {
  const env = { INLET_SERVICE__USERAGENT: "Mozilla/5.0 (allowed)", INLET_SERVICE__FILEIDLIST: "comma" };
  const settings = await load({ env: { ...BASE, ...env } });
  expect(settings).toMatchObject({ userAgent: "Mozilla/5.0 (allowed)", idListForm: "comma" });
  const problem = faultMessage(load({ env: { ...BASE, INLET_SERVICE__USERAGENT: "a\nb: c" } }));
  expect(await problem).toContain("printable ASCII characters");
});

test("the service in the environment uses the proxy of the environment, or its own", async () => {
  const env = {
    ...BASE,
    HTTPS_PROXY: "http://a",
    https_proxy: "http://b",
    NO_PROXY: "x.example",
    HTTP_PROXY: "http://c",
  };
  expect((await load({ env })).proxy).toEqual({ http: "http://c", https: "http://b", except: "x.example" });
  const own = { ...env, INLET_SERVICE__PROXY: "http://own" };
  expect((await load({ env: own })).proxy).toEqual({ http: "http://own", https: "http://own", except: "" });
});

test("the service in the environment may use plain http on this machine, elsewhere only with allowHttp", async () => {
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
    expect((await load({ env: {}, baseUrl: `http://${host}:8080` })).baseUrl.hostname).toBe(host);
  }
  for (const host of ["example.com", "localhost.example.com", "128.0.0.1", "[::2]"]) {
    const baseUrl = `http://${host}`;
    await expect(load({ env: {}, baseUrl })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(await load({ env: { INLET_SERVICE__ALLOWHTTP: "true" }, baseUrl })).toBeDefined();
  }
});

test("the service in the environment may name files with certificates, and never shows the key", async () => {
  const folder = await makeFolder();
  const key = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
  await writeFile(join(folder, "cert.pem"), CA);
  await writeFile(join(folder, "key.pem"), key, { mode: 0o600 });
  const env = {
    ...BASE,
    INLET_SERVICE__CA: "cert.pem",
    INLET_SERVICE__CERT: "cert.pem",
    INLET_SERVICE__KEY: "key.pem",
  };
  const settings = await load({ env, cwd: folder });
  expect(settings).toMatchObject({ ca: CA, key });
  expect({ ...settings }.key).toBe(key);
  for (const shown of [JSON.stringify({ settings }), inspect({ settings }, { depth: 9 })]) {
    expect(shown).toContain("[secret]");
    expect(shown).not.toContain("PRIVATE KEY");
  }
});

describe("the service in a file", () => {
  const text = `
service: { baseUrl: https://one.example.com, acceptLanguage: de }
mailboxes:
  - { email: a@example.com, name: Anna, service: { baseUrl: https://two.example.com, timeout: 5s } }
  - email: b@example.com
`;

  const loadFile = async (more: Partial<ServiceOptions> = {}) =>
    load({ path: await writeConfig(text), env: {}, ...more });

  test("needs no inbox; the environment overrides it, and --base-url overrides both", async () => {
    const hosts = [
      await loadFile(),
      await loadFile({ env: BASE }),
      await loadFile({ env: BASE, baseUrl: "https://three.example.com" }),
    ].map(({ baseUrl }) => baseUrl.host);
    expect(hosts).toEqual(["one.example.com", "transfer.example.com", "three.example.com"]);
  });

  test("may be a mailbox's own, selected by name or address", async () => {
    for (const mailbox of ["anna", "A@Example.com"]) {
      const own = await loadFile({ mailbox });
      expect([own.baseUrl.host, own.timeoutMs, own.acceptLanguage]).toEqual(["two.example.com", 5_000, "de"]);
    }
    expect((await loadFile({ mailbox: "b@example.com" })).baseUrl.host).toBe("one.example.com");
    const given = await loadFile({ mailbox: "Anna", baseUrl: "https://three.example.com" });
    expect([given.baseUrl.host, given.timeoutMs]).toEqual(["three.example.com", 5_000]);
  });

  test("lists the known mailboxes", async () => {
    for (const [mailbox, advice] of [
      ["Ana", "did you mean Anna?"],
      ["someone@else.example", "known: Anna, b@example.com"],
    ] as const) {
      const why = `--mailbox: there is no mailbox "${mailbox}", ${advice}`;
      expect(await faultMessage(loadFile({ mailbox }))).toContain(why);
    }
  });

  test("needs no passwords of mailboxes", async () => {
    const path = await writeConfig(
      `${text}    passwords: [{ sender: x, password: { credential: missing } }]\n`,
    );
    expect((await load({ path, env: {} })).baseUrl.host).toBe("one.example.com");
  });
});
