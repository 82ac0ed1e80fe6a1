import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openPasswordCommand } from "../../../src/config/credentials.ts";
import { variableFor } from "../../../src/config/draft.ts";
import { applyOverrides, readOverrides } from "../../../src/config/environment.ts";
import { SCHEMA } from "../../../src/config/schema.ts";
import type { SchemaNode } from "../../../src/config/schema-nodes.ts";
import { factsOf } from "../../../src/handoff/steps.ts";

/** The version is that of a file. */
const PATHS = pathsOf(SCHEMA, []).filter((path) => path.join(".") !== "version");

test("variables set the key they name, in any case", () => {
  fc.assert(
    fc.property(fc.constantFrom(...PATHS), fc.infiniteStream(fc.boolean()), (path, capitals) => {
      const name = [...variableFor(path)]
        .map((letter) => (capitals.next().value ? letter.toUpperCase() : letter.toLowerCase()))
        .join("");
      const { overrides, problems } = readOverrides({ [name]: "[]" });
      expect(problems).toEqual([]);
      expect(overrides).toMatchObject([{ name, path }]);
    }),
  );
});

test("variables differ for every key", () => {
  expect(new Set(PATHS.map(variableFor)).size).toBe(PATHS.length);
  expect(PATHS.map((path) => path.join("."))).toEqual(
    expect.arrayContaining(["service.baseUrl", "service.clientId.file", "mailboxes", "limits.maxFiles"]),
  );
});

test.each([
  [{ INLET_LIMITS__TRANSFERS: "8" }, { limits: { transfers: 8 } }],
  [{ INLET_SERVICE__ALLOWHTTP: "true" }, { service: { allowHttp: true } }],
  [{ INLET_LIMITS__MINFREESPACE: "1000" }, { limits: { minFreeSpace: "1000" } }],
  [{ INLET_SERVICE__TIMEOUT: "5" }, { service: { timeout: "5" } }],
  [{ INLET_HANDOFF__FILEMODE: "0640" }, { handoff: { fileMode: "0640" } }],
  [{ INLET_HANDOFF__DONE: "true" }, { handoff: { done: true } }],
  [{ INLET_HANDOFF__DONE: ".ok" }, { handoff: { done: ".ok" } }],
  [{ INLET_MAILBOXES: '[{"email":"a@b"}]' }, { mailboxes: [{ email: "a@b" }] }],
  [{ INLET_SERVICE: '{"baseUrl":"https://a"}' }, { service: { baseUrl: "https://a" } }],
  [{ INLET_SERVICE__CLIENTID: "{ not JSON" }, {}],
  [{ INLET_SERVICE__CLIENTID: '{"file":"/x"}' }, { service: { clientId: { file: "/x" } } }],
  [{ INLET_SERVICE__VERIFICATION__TOKEN: "{}x" }, {}],
  [{ INLET_SERVICE__VERIFICATION__TOKEN: "t" }, { service: { verification: { token: "t" } } }],
  [{ INLET_LIMITS__TRANSFERS: "four" }, { limits: { transfers: "four" } }],
  [{ INLET_QUEUE: "", INLET_CONFIG: "/x", INLET_PASSWORD: "secret", HOME: "/root" }, {}],
])("variables are parsed as JSON where the key needs it: %j", (env, values) => {
  expect(applyOverrides({}, readOverrides(env).overrides)).toEqual(values);
});

test("variables override the file, key by key, without changing their input", () => {
  const file = { service: { baseUrl: "https://file", timeout: "1s" }, inbox: "/file" };
  const { overrides } = readOverrides({ INLET_SERVICE__BASEURL: "https://env", INLET_WORK: "/w" });
  expect(applyOverrides(file, overrides)).toEqual({
    service: { baseUrl: "https://env", timeout: "1s" },
    inbox: "/file",
    work: "/w",
  });
  expect(file.service.baseUrl).toBe("https://file");
});

test("variables replace a secret of the file in another form", () => {
  const { overrides } = readOverrides({ INLET_SERVICE__CLIENTID__FILE: "/x" });
  for (const clientId of ["plain", { credential: "name" }]) {
    expect(applyOverrides({ service: { clientId } }, overrides)).toEqual({
      service: { clientId: { file: "/x" } },
    });
  }
});

test("variables can hold a list as JSON where plain text is allowed too", () => {
  const bandwidthOf = (text: string) =>
    applyOverrides({}, readOverrides({ INLET_LIMITS__BANDWIDTH: text }).overrides);
  expect(bandwidthOf("10MiB/s")).toEqual({ limits: { bandwidth: "10MiB/s" } });
  expect(bandwidthOf(' [{"rate":"none"}]')).toEqual({ limits: { bandwidth: [{ rate: "none" }] } });
  expect(readOverrides({ INLET_LIMITS__BANDWIDTH: "[10MiB/s]" }).problems).toMatchObject([
    { message: expect.stringContaining("or a list of rates and when they apply, written as JSON") },
  ]);
});

test("variables extend a group that another variable sets", () => {
  const { overrides, problems } = readOverrides({
    INLET_LIMITS__MAXFILES: "5",
    INLET_LIMITS: '{"transfers":2,"maxFiles":1}',
  });
  expect([applyOverrides({}, overrides), problems]).toEqual([{ limits: { transfers: 2, maxFiles: 5 } }, []]);
});

describe("unknown variables", () => {
  test.each([
    ["INLET_SERVICE_BASEURL", "no such variable, did you mean INLET_SERVICE__BASEURL?"],
    ["INLET_SERVICE__BASURL", "no such variable, did you mean INLET_SERVICE__BASEURL?"],
    ["INLET_SERVICE__CLIENT_ID", "no such variable, did you mean INLET_SERVICE__CLIENTID?"],
    ["INLET_INBX", "no such variable, did you mean INLET_INBOX?"],
    ["INLET_MAILBOX", "no such variable, did you mean INLET_MAILBOXES?"],
    ["INLET_MAILBOXES__0__POLL", "no such variable: the whole list is set by INLET_MAILBOXES, as JSON"],
    ["INLET_SOMETHING__QUITE__DIFFERENT", "no such variable: config/inlet.example.yaml lists every key"],
  ])("are reported with the nearest name: %s", (name, message) => {
    expect(readOverrides({ [name]: "hunter2" }).problems).toEqual([{ name, path: [], message }]);
  });

  test("of a command that Inlet runs are ignored, so the command can call Inlet", async () => {
    const facts = { id: "1", mailbox: "m", sender: "s", trackingId: "t", transferId: "x" };
    const handedOver = factsOf("delivered", { ...facts, verified: "all" }, "/srv", "/srv/x");
    // The daemon's other variables may hold secrets.
    const ours = { PATH: process.env["PATH"], SUPPLIER_PASSWORD: "hunter2" };
    const vault = openPasswordCommand(["sh", "-c", "env | tr '\\n' ' '"], ours);
    const transfer = { mailbox: "m", sender: "s", trackingId: "t", subject: "x" };
    const printed = (await vault.ask(transfer, AbortSignal.timeout(20_000)))?.reveal() ?? "";
    const ofVault = Object.fromEntries(new URLSearchParams(printed.trim().replaceAll(" ", "&")));
    expect(ofVault).toMatchObject({ INLET_SENDER: "s", INLET_SUBJECT: "x" });
    expect(ofVault).not.toHaveProperty("SUPPLIER_PASSWORD");
    for (const env of [ofVault, { ...handedOver, INLET_DELIVERED_AT: "x" }])
      expect(readOverrides(env)).toEqual({ overrides: [], problems: [] });
  });

  const OTHERS = [
    "VERSION IMAGE PORT PORT_8460_TCP_ADDR SERVICE_HOST SERVICE_PORT SERVICE_PORT_HTTP",
    "REDIS_PORT REDIS_PORT_6379_TCP_ADDR REDIS_SERVICE_HOST",
  ].join(" ");

  test.each([...OTHERS.split(" ").map((name) => `INLET_${name}`), "OUTLET_SERVICE__BASEURL"])(
    "are ignored if they belong to another program: %s",
    (name) => {
      expect(readOverrides({ [name]: "1.2.3" })).toEqual({ overrides: [], problems: [] });
    },
  );

  test("and contradictory ones are refused without quoting a value", () => {
    const { problems } = readOverrides({
      INLET_SERVICE__CLIENTID: "hunter2",
      INLET_SERVICE__CLIENTID__FILE: "/hunter2",
      INLET_QUEUE: "embedded",
      inlet_queue: "hunter2",
      INLET_MAILBOXES: "[{email: hunter2}]",
    });
    expect(problems.map(({ name, message }) => [name, message])).toEqual([
      ["INLET_MAILBOXES", expect.stringContaining("must be a list of at least one mailbox, written as JSON")],
      ["inlet_queue", "INLET_QUEUE sets the same key: set only one of the two"],
      ["INLET_SERVICE__CLIENTID__FILE", "INLET_SERVICE__CLIENTID sets the same key: set only one of the two"],
    ]);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

function pathsOf(node: SchemaNode, path: readonly string[]): (readonly string[])[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => [
    [...path, key],
    ...pathsOf(child, [...path, key]),
  ]);
}
