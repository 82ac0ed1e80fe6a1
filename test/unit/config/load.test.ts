import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadSettings } from "../../../src/config/load.ts";
import { handoffOf } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";
import {
  CLIENT_ID,
  config,
  faultMessage,
  load,
  NOWHERE,
  problemsOf,
  SMALLEST,
  writeConfig,
} from "./stage.ts";

test("the smallest configuration gets sensible defaults", async () => {
  const path = await writeConfig(SMALLEST);
  const settings = await loadSettings({ path, env: { STATE_DIRECTORY: "/var/lib/private/inlet" } });
  const sizes = { minFreeBytes: 2 ** 30, maxTransferBytes: 2 ** 40 };
  expect(settings).toMatchObject({
    source: path,
    inbox: "/srv/inbox",
    work: "/srv/inbox/.inlet",
    state: "/var/lib/private/inlet",
    queue: "embedded",
    limits: { transfers: 16, requests: 16, filesPerTransfer: 16, ...sizes, maxFiles: 100_000 },
    handoff: { fileMode: 0o640, folderMode: 0o750, marker: undefined },
    warnings: [],
  });
  expect(settings.mailboxes).toMatchObject([
    {
      name: "orders@example.com",
      email: "orders@example.com",
      pollMs: 60_000,
      fetch: "auto",
      verify: "require",
      layout: "{mailbox}/{sender}/{trackingId}",
      passwords: [],
      passwordAttempts: 2,
      paused: false,
      quiet: undefined,
      expect: [],
      service: {
        clientId: undefined,
        token: undefined,
        acceptLanguage: "en",
        timeoutMs: 30_000,
        idListForm: "repeat",
        proxy: { http: "", https: "", except: "" },
        userAgent: expect.stringMatching(/^inlet\/\d+\.\d+\.\d+ \(\+https:\/\/.+\)$/),
      },
    },
  ]);
});

test("the smallest configuration can come from the environment only", async () => {
  const env = {
    INLET_SERVICE__BASEURL: "https://transfer.example.com",
    INLET_SERVICE__CLIENTID: CLIENT_ID,
    INLET_INBOX: "inbox",
    INLET_MAILBOXES: '[{"email":"orders@example.com","passwords":[{"sender":"*","password":"p"}]}]',
  };
  const settings = await loadSettings({ env, cwd: "/here", defaultPaths: [NOWHERE] });
  expect(settings).toMatchObject({ source: "the environment", inbox: "/here/inbox", warnings: [] });
  expect(settings.mailboxes[0]?.service.baseUrl.href).toBe("https://transfer.example.com/");
});

describe("settings", () => {
  test("are as written", async () => {
    const settings = await load(`
service: { baseUrl: https://transfer.example.com/base, timeout: 5s, acceptLanguage: de }
inbox: in/box
work: work
state: ../state
mailboxes:
  - { email: a@example.com, name: A, poll: 5m, fetch: zip, verify: prefer, layout: "{year}/{transferId}" }
  - { email: b@example.com, passwordAttempts: 1, paused: true }
limits: { transfers: 1, filesPerTransfer: 2, minFreeSpace: 0, maxTransferSize: 10MiB, maxFiles: 3 }
handoff: { fileMode: 0600, folderMode: 0o700, marker: .done }
`);
    const folder = dirname(settings.source);
    const sizes = { minFreeBytes: 0, maxTransferBytes: 10_485_760 };
    expect(settings).toMatchObject({
      inbox: join(folder, "in/box"),
      work: join(folder, "work"),
      state: join(dirname(folder), "state"),
      limits: { transfers: 1, requests: 16, filesPerTransfer: 2, maxFiles: 3, ...sizes },
      handoff: { fileMode: 0o600, folderMode: 0o700, marker: ".done" },
    });
    const [a, b] = settings.mailboxes;
    expect(a).toMatchObject({ name: "A", pollMs: 300_000, fetch: "zip", verify: "prefer", paused: false });
    expect(b).toMatchObject({ name: "b@example.com", passwordAttempts: 1, paused: true });
    expect(a?.service).toBe(b?.service);
    expect(a?.service).toMatchObject({ timeoutMs: 5_000, acceptLanguage: "de" });
  });

  test("name the hand-off, and pass only harmless variables to the command", async () => {
    const env = { PATH: "/bin", HOME: "/root", LANG: "C", INLET_OTHER: "x", TOKEN: "secret" };
    const { source, handoff } = await load(
      `${SMALLEST}
handoff:
  command: [./import, a b]
  commandTimeout: 10s
  webhook: { url: "http://127.0.0.1:1/?token=q", secret: s3cret }
  acknowledgement: GOT-IT
  expectWithin: 1.5d
  keep: { pickedUp: 7d }
`,
      env,
    );
    expect(handoff).toMatchObject({
      command: {
        argv: [join(dirname(source), "import"), "a b"],
        env: { PATH: "/bin", HOME: "/root", LANG: "C" },
        timeoutMs: 10_000,
      },
      webhook: { timeoutMs: 30_000 },
      acknowledgement: "GOT-IT",
      expectWithinMs: 129_600_000,
      keep: { pickedUpMs: 604_800_000, notPickedUpMs: undefined },
    });
    expect(Object.keys(handoff.command?.env ?? {})).toEqual(["PATH", "HOME", "LANG"]);
    expect(handoff.webhook?.url.href).toBe("http://127.0.0.1:1/?token=q");
    expect(JSON.stringify(handoff.webhook?.secret)).not.toContain("s3cret");
  });

  test("are those of `defaults` in mailboxes that do not set them, and include the common passwords after their own", async () => {
    const { mailboxes } = await load(
      config(`defaults: { poll: 5m, verify: prefer, fetch: zip, quiet: ["sat,sun"] }
passwords: [{ sender: "*@group.example", password: common }]
mailboxes:
  - { email: a@example.com, passwords: [{ sender: "*", password: own }] }
  - { email: b@example.com, poll: 10s, verify: require, fetch: files }
`),
    );
    expect(mailboxes).toMatchObject([
      { pollMs: 300_000, verify: "prefer", fetch: "zip", quiet: {} },
      { pollMs: 10_000, verify: "require", fetch: "files", quiet: {} },
    ]);
    const senders = mailboxes.map(({ passwords }) => passwords.map(({ sender }) => sender));
    expect(senders).toEqual([["*", "*@group.example"], ["*@group.example"]]);
  });

  describe("of several services", () => {
    const configured = (passwords: string) =>
      config(`passwords: [${passwords}]
mailboxes:
  - { email: a@example.com }
  - { email: b@example.com, service: { baseUrl: https://transfer.partner.example/x/ } }
`);

    test("get only the common passwords that name their service", async () => {
      const { mailboxes } = await load(
        configured(`{ sender: ours, password: x, service: "https://Transfer.example.com/" },
  { sender: theirs, password: x, service: https://transfer.partner.example/x }`),
      );
      const senders = mailboxes.map(({ passwords }) => passwords.map(({ sender }) => sender));
      expect(senders).toEqual([["ours"], ["theirs"]]);
    });

    test.each([
      ["", "is missing: the mailboxes use several services, and each would learn the password"],
      [", service: https://other.example", "is the service of no mailbox"],
      [", service: other", "is the service of no mailbox"],
    ])("refuse a common password%s", async (service, why) => {
      const problems = await problemsOf(configured(`{ sender: "*", password: x${service} }`));
      expect(problems.join()).toContain(`passwords[0].service: ${why}`);
      expect(problems.join()).toContain(
        "write one of https://transfer.example.com, https://transfer.partner.example/x",
      );
    });
  });

  test("name the hand-off of each mailbox, and remove nothing of one that is no longer configured", async () => {
    const settings = await load(
      config(`handoff: { fileMode: "0644", command: [./import], commandTimeout: 1m, keep: { notPickedUp: 9d } }
mailboxes:
  - { email: a@example.com }
  - { email: b@example.com, handoff: { commandTimeout: 2m, keep: { pickedUp: 1d } } }
`),
    );
    const { handoff, mailboxes } = settings;
    const [a, b] = mailboxes.map((mailbox) => mailbox.handoff);
    expect(a).toBeUndefined();
    expect(handoffOf(settings, { mailbox: "A@Example.com" })).toBe(handoff);
    expect(handoffOf(settings, { mailbox: "B@Example.com" })).toBe(b);
    // It may have had its own retention.
    expect(handoffOf(settings, { mailbox: "no longer configured" })).toEqual({ ...handoff, keep: undefined });
    const keep = { pickedUpMs: 86_400_000, notPickedUpMs: 9 * 86_400_000 };
    expect(b).toEqual({ ...handoff, command: { ...handoff.command, timeoutMs: 120_000 }, keep });
  });

  test("run a step of a delivery as its owner has it, or not at all", async () => {
    const [common, own] = ["command: [./common]", "command: [./own]"];
    const settings = (boxes: string) => load(config(`handoff: { ${common} }\nmailboxes:\n${boxes}`));
    const other = "  - { email: b@example.com }\n";
    const programOf = async (boxes: string, owner?: "mailbox" | "common") => {
      const delivery = { mailbox: "a@example.com", rule: undefined, owners: { command: owner } };
      const handoff = handoffOf(await settings(boxes + other), delivery);
      return handoff.gone?.command ? "gone" : handoff.command?.argv[0]?.replace(/.*\//, "");
    };
    const withOwn = `  - { email: a@example.com, handoff: { ${own} } }\n`;
    const without = "  - { email: a@example.com }\n";
    expect(await programOf(withOwn, "mailbox")).toBe("own");
    expect(await programOf(without, "mailbox")).toBe("gone");
    expect(await programOf("", "mailbox")).toBe("gone");
    for (const boxes of [withOwn, without, ""]) expect(await programOf(boxes, "common")).toBe("common");
    // As an earlier version did.
    expect(await programOf(withOwn)).toBe("own");
    expect(await programOf("")).toBe("common");
  });

  test("I4 no leaks: the webhook of a mailbox does not inherit the secret of another address", async () => {
    const webhook = (keys: string) => `handoff: { webhook: { url: https://hooks.example.com${keys} } }`;
    const own = config(`${webhook(", secret: s")}\nmailboxes: [{ email: a@b, ${webhook("/own")} }]`);
    expect((await problemsOf(own)).join()).toContain("mailboxes[0].handoff.webhook.secret: is missing");
  });

  test("how consumers get a transfer is set for each mailbox, and single files may share a folder", async () => {
    const { handoff, mailboxes } = await load(
      config(`defaults: { layout: "{mailbox}/{trackingId}" }
handoff: { done: true, marker: READY }
mailboxes:
  - { email: a@example.com, layout: flat, handoff: { deliver: files, done: .ok, marker: none } }
  - { email: b@example.com, handoff: { manifest: beside, done: false } }
  - { email: c@example.com, handoff: { deliver: files, manifest: beside, marker: none } }
`),
      {},
    );
    const handoffs = [handoff, ...mailboxes.map((mailbox) => mailbox.handoff)];
    const picked = handoffs.map((it) => [it?.deliver, it?.manifest, it?.done]);
    expect(picked).toEqual([
      ["folder", "inside", ".done"],
      ["files", "none", ".ok"],
      ["folder", "beside", undefined],
      ["files", "beside", ".done"],
    ]);
    expect(handoff.names).toBe("{trackingId}_{name}");
    const shared = await problemsOf(config("mailboxes: [{ email: a@example.com, layout: flat }]"));
    expect(shared).toEqual([expect.stringContaining("must contain {trackingId} or {transferId}")]);
  });

  test("include a warning about keep.pickedUp without an acknowledgement", async () => {
    const { warnings } = await load(
      config("handoff: { keep: { pickedUp: 7d } }\nmailboxes: [{ email: a@b, handoff: { done: true } }]"),
    );
    expect(warnings).toEqual([expect.stringContaining("handoff.keep.pickedUp: not used")]);
  });

  test.each([
    [0, {}, "/var/lib/inlet"],
    [0, { STATE_DIRECTORY: "/a:/b" }, "/a"],
    [1000, { HOME: "/home/me" }, "/home/me/.local/state/inlet"],
    [1000, { HOME: "/home/me", XDG_STATE_HOME: "/home/me/s" }, "/home/me/s/inlet"],
    [1000, { HOME: "/home/me", XDG_STATE_HOME: "relative" }, "/home/me/.local/state/inlet"],
  ])("get the system's state folder by default: user %d, %j", async (uid, env, state) => {
    expect(await loadSettings({ path: await writeConfig(SMALLEST), env, uid })).toMatchObject({ state });
  });
});

test("the file is looked for in the user's configuration folder before /etc", async () => {
  const home = await makeFolder();
  const write = async (folder: string) => {
    await mkdir(join(home, folder, "inlet"), { recursive: true });
    const path = join(home, folder, "inlet/inlet.yaml");
    await writeFile(path, SMALLEST);
    return path;
  };
  const usual = await write(".config");
  expect((await loadSettings({ env: { HOME: home } })).source).toBe(usual);
  const chosen = await write("xdg");
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, "xdg") };
  expect((await loadSettings({ env })).source).toBe(chosen);
  // The specification has relative paths ignored.
  expect((await loadSettings({ env: { HOME: home, XDG_CONFIG_HOME: "xdg" } })).source).toBe(usual);
  const missing = join(home, "missing.yaml");
  expect((await loadSettings({ env: {}, defaultPaths: [missing, usual] })).source).toBe(usual);
});

test("the file is named by --config, else INLET_CONFIG, else the default", async () => {
  const [path, variable, usual] = await Promise.all([1, 2, 3].map(() => writeConfig(SMALLEST)));
  const options = { env: { INLET_CONFIG: variable }, defaultPaths: [usual ?? ""] };
  const sourceOf = async (more: object) => (await loadSettings({ ...options, ...more })).source;
  expect(await sourceOf({ path })).toBe(path);
  expect(await sourceOf({ path: basename(path ?? ""), cwd: dirname(path ?? "") })).toBe(path);
  expect(await sourceOf({})).toBe(variable);
  expect(await sourceOf({ env: {} })).toBe(usual);
});

test("the file must exist if it is named, and be a text that is not too large", async () => {
  const folder = await makeFolder();
  const path = join(folder, "x");
  const refuse = async (options: object, why: string) =>
    expect(await faultMessage(loadSettings({ env: {}, ...options }))).toContain(why);
  await refuse({ path }, `${path} does not exist, but --config names it`);
  await refuse({ env: { INLET_CONFIG: path } }, `${path} does not exist, but INLET_CONFIG names it`);
  await refuse({ path: folder }, `${folder} cannot be read (EISDIR)`);
  await writeFile(path, Buffer.from([0x61, 0x3a, 0x20, 0xe4, 0x0a]));
  await refuse({ path }, "is not UTF-8 text");
  await writeFile(path, "#".repeat(2_000_000));
  await refuse({ path }, "is too large");
});

test("the file has a message with the first steps if it is missing and nothing is set", async () => {
  const messageFor = (...defaultPaths: string[]) => faultMessage(loadSettings({ env: {}, defaultPaths }));
  const message = await messageFor(NOWHERE);
  expect(message).toContain(`${NOWHERE} does not exist, neither --config nor INLET_CONFIG names another`);
  const both = await messageFor(NOWHERE, `${NOWHERE}-2`);
  expect(both).toContain(`${NOWHERE} and ${NOWHERE}-2 do not exist, neither --config`);
  const [, example = ""] = /copy of (\S+),/.exec(message) ?? [];
  expect(await readFile(example, "utf8")).toContain("inbox:");
});
