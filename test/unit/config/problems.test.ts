/** What people get wrong, and what they are told: the position, the key, the value unless it may be secret, and a remedy. */
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { loadSettings } from "../../../src/config/load.ts";
import { makeFolder } from "../../support/program.ts";
import { readRulePassword } from "../../support/rule-passwords.ts";
import { FOLDER as TLS_FOLDER } from "../../support/tls.ts";
import { CLIENT_ID, casesOf, config, load, NOWHERE, problemsOf, writeConfig } from "./stage.ts";

/** Lines of the configuration, and below them a part of the only problem. */
const WRONG = String.raw`
inboxx: /x
  inlet.yaml:4:1: inboxx: unknown key, did you mean inbox?
poll: 5s
  inlet.yaml:4:1: poll: unknown key here, it belongs to mailboxes[] or defaults
colour: red
  inlet.yaml:4:1: colour: unknown key, known: version, service, inbox, work, state, timezone, queue, redis, role,
limits: { tranfers: 4 }
  inlet.yaml:4:11: limits.tranfers: unknown key, did you mean transfers?
keep: { xy: 1d }
  inlet.yaml:4:9: keep.xy: unknown key, known: 
__proto__: 1
  __proto__: unknown key
inbox:
  inlet.yaml:2:1: inbox: has no value: give a path, or remove the key
inbox: ~/in
  inbox: "~/in" is not a path: ~ is not expanded, write the whole path from / on
inbox: 5
  inlet.yaml:2:1: inbox: 5 is not a path: put it in quotes
service: { baseUrl: https://a.example, clientId: { file: $SECRETS/id } }
  service.clientId.file: must be a path: $ is
limits: 4
  inlet.yaml:4:1: limits: must be a group of keys
limits: { transfers: "5" }
  limits.transfers: "5" is not a whole number from 1 to 1000: write it without quotes
limits: { minFreeSpace: 1 gig }
  limits.minFreeSpace: "1 gig" is not a size such as 10MiB, 1GB or a number of bytes
limits: { maxTransferSize: 0B }
  limits.maxTransferSize: "0B" is too small for any transfer
version: 2
  version: 2 is not 1, the only version that this Inlet supports: a newer file needs a newer Inlet
defaults: { layout: {trackingId} }
  defaults.layout: must be a relative path with placeholders: put it in quotes, because it begins with {
handoff: { names: {trackingId}_{name} }
  inlet.yaml:4:31: a value that begins with { must be in quotes, such
timezone: Europe/Berln
  "Europe/Berln" is not the name of a time zone such as Europe/Berlin: did you mean Europe/Berlin?
keep: { ledger: 90 }
  keep.ledger: 90 is not forever, or a duration such as 30m, 12h or 7d: write 90d
work: /srv/inbox
  work: "/srv/inbox" is the inbox itself: choose another folder
work: /srv/inbox/work
  work: "/srv/inbox/work" is inside the inbox, where a delivery could collide with it

limits: { bandwidth: 10MiB }
  limits.bandwidth: "10MiB" is not none, a rate such as 10MiB/s, or a list
limits: { bandwidth: 5 }
  limits.bandwidth: 5 is not none, a rate such as 10MiB/s, or a list of rates and when they apply: write 5MiB/s
limits: { bandwidth: 500B/s }
  limits.bandwidth: "500B/s" is less than 1KiB/s
limits: { bandwidth: [{ at: sat }] }
  limits.bandwidth[0].rate: is missing: give none or a rate such as
limits: { bandwidth: [{ at: mno, rate: none }] }
  limits.bandwidth[0].at: "mno" is not a weekly window such as mon-fri 08:00-18:00: "mno" is not a day: write
limits: { bandwidth: [{ rate: none }, { at: sat, rate: 1MiB/s }] }
  limits.bandwidth[1]: never applies, because the entry before it always does

check: { command: [clamdscan, --fdpass, .] }
  check.command[2]: is a relative path, and the program does not run in the folder of the transfer: write "{folder}"
check: { command: [""] }
  check.command[0]: names no program
check: { memory: 1MiB }
  check.memory: "1MiB" is less than 16MiB

handoff: { fileMode: 400 }
  handoff.fileMode: 400 may be octal or decimal: write it as "0640" or 0o640
handoff: { fileMode: "0240" }
  handoff.fileMode: "0240" must let the owner read: begin it with 04 or 06
handoff: { marker: a/b }
  handoff.marker: "a/b" is not none or a plain file name
handoff: { marker: sha256sums }
  handoff.marker: "sha256sums" cannot be used: Inlet writes SHA256SUMS itself
handoff: { marker: Done, acknowledgement: DONE }
  handoff.acknowledgement: "DONE" is the marker, which exists from the start
handoff: { done: done }
  handoff.done: "done" is not true, false or the end of a name such as .done
handoff: { names: '{name}' }
  handoff.names: "{name}" must contain {trackingId} or {transferId}: otherwise files
handoff: { names: '{name}{name}{trackingId}' }
  must contain {name} once
handoff: { names: '.{trackingId}_{name}' }
  must not begin with a dot
handoff: { names: '{trackingid}_{name}' }
  contains the unknown placeholder {trackingid}, did you mean {trackingId}?
handoff: { names: '{trackingId}_{name}}' }
  contains an unmatched { or }
handoff: { deliver: files, marker: READY }
  handoff.marker: "READY" cannot be used with deliver: files, because no folder is delivered: set done instead
handoff: { command: [a, "b\0c"] }
  handoff.command[1]: contains a NUL, which no argument can hold
handoff: { webhook: { url: https://u:hunter2@h, secret: s } }
  handoff.webhook.url: must not contain a user or password
handoff: { webhook: { url: http://h.example/hunter2, secret: s } }
  handoff.webhook.url: would be called unencrypted: use https, or set handoff.webhook.allowHttp to true

http: { listen: 8460 }
  http.listen: 8460 is not false, a host and a port such as 127.0.0.1:8460, or unix: and a path
http: { publicUrl: 'https://h/' }
  http.publicUrl: must be an address such as https://inlet.example.com, without a slash at its end
http: { publicUrl: 'https://u:hunter2@h' }
  http.publicUrl: must not contain a user or password
http: { actions: true }
  http.actions: needs http.token or http.tokens: without one, everyone who can reach the address could act
http: { read: token }
  http.read: needs http.token or http.tokens: without one, nobody could read
http: { actions: true, token: 0123456789abcde }
  http.token: the plain text of http.token in inlet.yaml is too short: a token needs at least 16 characters
http: { actions: true, token: 90210 }
  http.token: must be text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }: put it in quotes
http: { tokens: [{ name: a, token: short }] }
  http.tokens[0].token: the plain text of
http: { tokens: [{ name: a, token: 0123456789abcdef }, { name: a, token: 0123456789abcdef }] }
  http.tokens[1].name: "a" is used twice
http: { tokens: [{ name: 'a b', token: 0123456789abcdef }] }
  http.tokens[0].name: "a b" is not a name of letters, digits and ._@-

service: {}
  inlet.yaml:1:1: service.baseUrl: is missing: give the address of the service, or set INLET_SERVICE__BASEURL
service: { baseUrl: https://x.example/api/ }
  service.baseUrl: "https://x.example/api/" ends with /api: give only the part before it
service: { baseUrl: ftp://x }
  service.baseUrl: "ftp://x" is not the address of a service such as https://
service: { baseUrl: transfer.example.com:8443 }
  "transfer.example.com:8443" is not the address of a service: write https://transfer.example.com:8443
service: { baseUrl: transfer.example.com/t/api }
  is not the address of a service: write https://transfer.example.com/t
service: { baseUrl: http://example.com }
  http://example.com would send secrets unencrypted: write https://example.com, or set service.allowHttp to true
service: { baseUrl: 'https://u:hunter2@example.com' }
  service.baseUrl: must not contain a user or password
service: { baseUrl: 'https://u:hunter2@' }
  service.baseUrl: this is not the address of a service
service: { baseUrl: 'https://x/?key=hunter2' }
  service.baseUrl: must not contain ? or #
service: { baseUrl: 'https://x', clientId: hunter2 }
  service.clientId: must be 50 to 4000 letters and digits, or one of { file
service: { baseUrl: 'https://x', verification: {} }
  service.verification.token: is missing: give text, or one
service: { baseUrl: 'https://x', proxy: hunter2 }
  service.proxy: must be the address of a proxy such as http://
service: { baseUrl: 'https://x', ca: ${join(TLS_FOLDER, "server.key")} }
  server.key holds no certificate
service: { baseUrl: 'https://x', ca: inlet.yaml }
  is not a PEM file: it has no line -----BEGIN …-----
service: { baseUrl: 'https://x', acceptLanguage: "a\nb" }
  service.acceptLanguage: "a\nb" is not one or more languages such as en

mailboxes: []
  mailboxes: must be a list of at least one mailbox
mailboxes: [{ name: x }]
  inlet.yaml:3:13: mailboxes[0].email: is missing: give an email address
mailboxes: [{ email: nobody }]
  mailboxes[0].email: "nobody" is not an email address
mailboxes: [{ email: a@b, name: 5 }]
  mailboxes[0].name: 5 is not a name without slashes that does not begin with a dot: put it in quotes
mailboxes: [{ email: a@b }, { email: A@B }]
  mailboxes[1].email: "A@B" is already used by mailboxes[0]
mailboxes: [{ email: a@b, name: X }, { email: c@d, name: x }]
  mailboxes[1].name: "x" is already used by mailboxes[0]
mailboxes: [{ email: a@b, poll: 60 }]
  mailboxes[0].poll: 60 is not a duration such as 250ms, 30s, 5m or 1h: write 60s
mailboxes: [{ email: a@b, paused: 'true' }]
  mailboxes[0].paused: "true" is not true or false: write it without quotes
mailboxes: [{ email: a@b, paused: yes }]
  mailboxes[0].paused: "yes" is not true or false: write true
mailboxes: [{ email: a@b, quiet: [sat, 'mon 8-18'] }]
  quiet[1]: "mon 8-18" is not a weekly window such as mon-fri 08:00-18:00: "8" is not a time such as
mailboxes: [{ email: a@b, quiet: [mon-fri, 'sat,sun'] }]
  mailboxes[0].quiet: leaves no time for downloads: to stop the mailbox, set paused
mailboxes: [{ email: a@b, since: 2026-02-30 }]
  mailboxes[0].since: "2026-02-30" is not a date
mailboxes: [{ email: a@b, expect: [{ sender: x, by: 25:00 }] }]
  mailboxes[0].expect[0].by: "25:00" is not a time of day such as 06:00
mailboxes: [{ email: a@b, expect: [{ sender: x, by: 06:00 }, { sender: x, by: 06:00 }] }]
  mailboxes[0].expect[1]: repeats expect[0]

defaults: { layout: "/srv/{trackingId}" }
  defaults.layout: "/srv/{trackingId}" must be relative: it begins inside the inbox
defaults: { layout: "{sender}/.x/{trackingId}" }
  must not contain a part that begins with a dot
defaults: { layout: "{trackingId}/" }
  must not contain an empty part between slashes
defaults: { layout: "a\\{trackingId}" }
  must not contain backslashes or control characters
defaults: { layout: "{x}/{trackingId}" }
  contains the unknown placeholder {x}, known: {mailbox} {sender} {senderDomain}
defaults: { layout: "{mailbox}/{subject}" }
  must contain {trackingId} or {transferId}: otherwise two transfers could have the same

passwords: [{ sender: x }]
  passwords[0].password: is missing: give text, or one of { file: … }, { env: … }, { credential: … }, { command
passwords: [{ password: hunter2 }]
  passwords[0]: must say which transfers it opens: set sender, trackingId or both
passwords: [{ sender: x, password: { hunter2 } }]
  passwords[0].password: has an unknown key, must be text, or one of { file: … }, { env: … }
passwords: [{ sender: x, password: { flie: hunter2 } }]
  passwords[0].password: has an unknown key, did you mean file?
passwords: [{ sender: x, password: { credential: ../x } }]
  passwords[0].password.credential: must be a plain file name
`;

test.each(casesOf(WRONG))("%s", async (lines, part) => {
  const problems = await problemsOf(config(lines));
  expect(problems).toEqual([expect.stringContaining(part)]);
  // The value of a secret, or a number that stands for one.
  expect(problems.join()).not.toMatch(/hunter2|90210/);
});

test("a certificate and its private key need each other", async () => {
  const problems = async (given: string) =>
    (await problemsOf(config(`service: { baseUrl: 'https://x', ${given}: a.pem }`))).join();
  expect(await problems("cert")).toContain("service.cert: needs its private key too: set key");
  expect(await problems("key")).toContain("service.key: needs its certificate too: set cert");
});

test("a certificate that is larger than any bundle is not read", async () => {
  const file = join(await makeFolder(), "ca.pem");
  await writeFile(file, "");
  // Sparse: it takes no room on the disk.
  await truncate(file, 3 * 1024 ** 3);
  const problems = await problemsOf(config(`service: { baseUrl: 'https://x', ca: ${file} }`));
  expect(problems).toEqual([expect.stringContaining(`${file} is too large to be a PEM file`)]);
});

test("problems are reported together: those of the environment first, then in the order of the file", async () => {
  const text = config("inbox: ~\nmailboxes: [{ email: a@b, poll: soon }, { email: A@B }]\nstat: x");
  expect(await problemsOf(text, { INLET_LIMITS__TRANSFERS: "many", INLET_SERVICE_BASEURL: "x" })).toEqual([
    "INLET_SERVICE_BASEURL: no such variable, did you mean INLET_SERVICE__BASEURL?",
    'INLET_LIMITS__TRANSFERS: limits.transfers: "many" is not a whole number from 1 to 1000',
    "inlet.yaml:2:1: inbox: has no value: give a path, or remove the key",
    expect.stringContaining("inlet.yaml:3:27: mailboxes[0].poll: "),
    expect.stringContaining("inlet.yaml:3:43: mailboxes[1].email: "),
    "inlet.yaml:4:1: stat: unknown key, did you mean state?",
  ]);
});

test("problems of an empty file name every required key", async () => {
  expect(await problemsOf("# nothing yet\n")).toEqual([
    "inlet.yaml: inbox: is missing: give a path, or set INLET_INBOX",
    "inlet.yaml: mailboxes: is missing: give a list of at least one mailbox, or set INLET_MAILBOXES",
    "inlet.yaml: service.baseUrl: is missing: give the address of the service, or set INLET_SERVICE__BASEURL",
  ]);
});

test("problems in YAML are reported by position only", async () => {
  expect(await problemsOf("inbox: /x\n\twork: /y\n")).toEqual([
    "inlet.yaml:2:1: tabs cannot be used for indentation: use spaces",
  ]);
});

test("problems in a variable with JSON name the variable and the key inside", async () => {
  const env = { INLET_MAILBOXES: '[{"email":"a@b","pol":"5m","passwords":[{"sender":"x","password":7}]}]' };
  expect(await problemsOf(config(""), env)).toEqual([
    "INLET_MAILBOXES: mailboxes[0].pol: unknown key, did you mean poll?",
    `INLET_MAILBOXES: mailboxes[0].passwords[0].password: must be text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }: put it in quotes`,
  ]);
});

test("problems of a variable that is not JSON stand for its key", async () => {
  const text = "service: { baseUrl: https://a.example }\ninbox: /x\n";
  expect(await problemsOf(text, { INLET_MAILBOXES: "[hunter2" })).toEqual([
    expect.stringMatching(/^INLET_MAILBOXES: mailboxes: must be a list .*, written as JSON/),
  ]);
});

test("problems with long or strange text stay on one short line", async () => {
  const [problem = "", ...more] = await problemsOf(
    config(`limits: { transfers: "a\\nb${"x".repeat(999)}" }`),
  );
  expect(more).toEqual([]);
  expect(problem.length).toBeLessThan(250);
  const [key = ""] = await problemsOf(config('"strange\\nkey": 1'));
  expect(key).toContain('"strange\\nkey": unknown key');
});

describe("secrets", () => {
  const passwords = `[{ sender: x, password: hunter2 }]`;
  const service = `service: { baseUrl: 'https://x', clientId: ${CLIENT_ID}, verification: { token: hunter2 }, proxy: 'http://u:hunter2@p' }`;

  test("do not show in printed settings", async () => {
    const settings = await load(config(`${service}\nmailboxes: [{ email: a@b, passwords: ${passwords} }]`));
    const shown = [JSON.stringify(settings), inspect(settings, { depth: 20, showHidden: true })].join();
    expect(shown).not.toMatch(/hunter2|CCCCC/);
    const [mailbox] = settings.mailboxes;
    const { signal } = new AbortController();
    expect(await readRulePassword(mailbox?.passwords[0])).toBe("hunter2");
    expect((await mailbox?.service.token?.read(signal))?.reveal()).toBe("hunter2");
    expect((await mailbox?.service.clientId?.read(signal))?.reveal()).toBe(CLIENT_ID);
    expect(mailbox?.service.proxy.https).toBe("http://u:hunter2@p");
  });

  test("do not show in a fault, however it is printed", async () => {
    const path = await writeConfig(
      config(
        `${service}\nmailboxes: [{ email: a, passwords: ${passwords} }]\nqueue: redis://:hunter2@host/hunter2@`,
      ),
    );
    const env = { INLET_MAILBOXES: "[hunter2", INLET_SERVICE__CLIENTID: "hunter2" };
    for (const options of [
      { path, env: {} },
      { path, env },
      { env, defaultPaths: [NOWHERE] },
      { path: await writeConfig("password: *hunter2\n"), env: {} },
    ]) {
      const fault: unknown = await loadSettings(options).catch((error: unknown) => error);
      expect(fault).toBeInstanceOf(Fault);
      const shown = [String(fault), inspect(fault, { depth: 20, showHidden: true }), (fault as Fault).stack];
      expect(shown.join()).not.toMatch(/hunter2|CCCCC/);
    }
  });
});
