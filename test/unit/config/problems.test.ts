import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { loadSettings } from "../../../src/config/load.ts";
import { readRulePassword } from "../../support/rule-passwords.ts";
import { FOLDER as TLS_FOLDER } from "../../support/tls.ts";
import { CLIENT_ID, load, NOWHERE, problemsOf, writeConfig } from "./stage.ts";

/** A complete configuration with replaceable parts. */
function config(part: Readonly<Record<string, string>>): string {
  const parts = {
    service: "{ baseUrl: https://transfer.example.com }",
    inbox: "/srv/inbox",
    mailboxes: "[{ email: orders@example.com }]",
    ...part,
  };
  return Object.entries(parts)
    .map(([key, value]) => `${key}: ${value}\n`)
    .join("");
}

const SECRET_FORMS = "text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }";

describe("a problem is reported with position, key, value and remedy", () => {
  test.each([
    ["inboxx", "/x", "inlet.yaml:4:1: inboxx: unknown key, did you mean inbox?"],
    ["poll", "5s", "inlet.yaml:4:1: poll: unknown key here, it belongs to mailboxes[] or defaults"],
    ["clientId", "x", "clientId: unknown key here, it belongs to service"],
    [
      "colour",
      "red",
      "inlet.yaml:4:1: colour: unknown key, known: version, service, inbox, work, state, timezone, queue, redis, role, mailboxes, defaults, passwords, limits, keep, check, handoff",
    ],
    ["inbox", "", "inlet.yaml:2:1: inbox: has no value: give a path, or remove the key"],
    ["inbox", "~/in", 'inbox: "~/in" is not a path: ~ is not expanded, write the whole path from / on'],
    ["inbox", "$HOME/in", 'inbox: "$HOME/in" is not a path: $ is not expanded, write the whole path'],
    ["inbox", "/srv/$USER/in", 'inbox: "/srv/$USER/in" is not a path: $ is not expanded'],
    [
      "service",
      "{ baseUrl: https://a.example, clientId: { file: $SECRETS/id } }",
      "file: must be a path: $ is",
    ],
    [
      "defaults",
      "{ layout: {trackingId} }",
      "must be a relative path with placeholders: put it in quotes, because",
    ],
    [
      "handoff",
      "{ names: {trackingId}_{name} }",
      "inlet.yaml:4:31: a value that begins with { must be in quotes, such",
    ],
    [
      "defaults",
      "\n  layout: {mailbox}/{trackingId}",
      "inlet.yaml:5:20: a value that begins with { must be in",
    ],
    [
      "check",
      "{ command: [clamdscan, --fdpass, .] }",
      'check.command[2]: is a relative path, and the program does not run in the folder of the transfer: write "{folder}"',
    ],
    ["inbox", "5", "inlet.yaml:2:1: inbox: 5 is not a path: put it in quotes"],
    ["queue", "7", "inlet.yaml:4:1: queue: must be embedded, or the address of a Redis such as redis://"],
    ["limits", "{ transfers: 0 }", "limits.transfers: 0 is not a whole number from 1 to 1000"],
    ["limits", "{ transfers: 1.5 }", "limits.transfers: 1.5 is not a whole number from 1 to 1000"],
    ["limits", '{ transfers: "5" }', '"5" is not a whole number from 1 to 1000: write it without quotes'],
    ["limits", "{ minFreeSpace: 1 gig }", '"1 gig" is not a size such as 10MiB, 1GB or a number of bytes'],
    ["limits", "{ maxTransferSize: 0B }", 'limits.maxTransferSize: "0B" is too small for any transfer'],
    ["limits", "{ maxTransferSize: 999999999TiB }", '"999999999TiB" is too large'],
    ["limits", "{ tranfers: 4 }", "inlet.yaml:4:11: limits.tranfers: unknown key, did you mean transfers?"],
    ["limits", "4", "inlet.yaml:4:1: limits: must be a group of keys"],
    [
      "service",
      "{ baseUrl: https://x.example/api/ }",
      'service.baseUrl: "https://x.example/api/" ends with /api: give only the part before it',
    ],
    [
      "version",
      "2",
      "version: 2 is not 1, the only version that this Inlet supports: a newer file needs a newer Inlet",
    ],
    [
      "handoff",
      "{ fileMode: 400 }",
      'handoff.fileMode: 400 may be octal or decimal: write it as "0640" or 0o640',
    ],
    ["handoff", "{ fileMode: 0999 }", '"0999" is not an octal mode from "0000" to "0777", such as "0640"'],
    ["handoff", '{ fileMode: "4755" }', '"4755" is not an octal mode from "0000" to "0777", such as "0640"'],
    ["handoff", '{ fileMode: "0240" }', '"0240" must let the owner read: begin it with 04 or 06'],
    [
      "handoff",
      '{ folderMode: "0550" }',
      '"0550" must let the owner read, write and enter: begin it with 07',
    ],
    ["check", "{ command: scan }", "check.command: must be a list of a program and its arguments"],
    ["check", '{ command: [""] }', "check.command[0]: names no program"],
    ["check", "{ memory: 1MiB }", 'check.memory: "1MiB" is less than 16MiB'],
    ["check", "{ timeout: 48h }", 'check.timeout: "48h" is longer than 24h'],
    [
      "timezone",
      "Europe/Berln",
      '"Europe/Berln" is not the name of a time zone such as Europe/Berlin: did you',
    ],
    ["timezone", "Mordor", 'inlet.yaml:4:1: timezone: "Mordor" is not the name of a time zone such as'],
    [
      "limits",
      "{ bandwidth: 10MiB }",
      'limits.bandwidth: "10MiB" is not none, a rate such as 10MiB/s, or a list',
    ],
    ["limits", "{ bandwidth: 10 }", "limits.bandwidth: 10 is not none, a rate such as 10MiB/s, or a list"],
    ["limits", "{ bandwidth: 500B/s }", 'limits.bandwidth: "500B/s" is less than 1KiB/s'],
    ["limits", "{ bandwidth: 999999999TiB/s }", '"999999999TiB/s" is too large'],
    [
      "limits",
      "{ bandwidth: [] }",
      "limits.bandwidth: must be none, a rate such as 10MiB/s, or a list of rates",
    ],
    ["limits", "{ bandwidth: [1MiB/s] }", "limits.bandwidth[0]: must be a rate and when it applies"],
    [
      "limits",
      "{ bandwidth: [{ at: sat }] }",
      "limits.bandwidth[0].rate: is missing: give none or a rate such as",
    ],
    [
      "limits",
      "{ bandwidth: [{ rate: fast }] }",
      'limits.bandwidth[0].rate: "fast" is not none or a rate such as',
    ],
    ["limits", "{ bandwidth: [{ rate: 1B/s }] }", 'limits.bandwidth[0].rate: "1B/s" is less than 1KiB/s'],
    [
      "limits",
      "{ bandwidth: [{ at: mno, rate: none }] }",
      'limits.bandwidth[0].at: "mno" is not a weekly window such as mon-fri 08:00-18:00: "mno" is not a day: write',
    ],
    [
      "limits",
      "{ bandwidth: [{ rate: none }, { at: sat, rate: 1MiB/s }] }",
      "limits.bandwidth[1]: never applies, because the entry before it always does",
    ],
    ["handoff", "{ marker: a/b }", 'handoff.marker: "a/b" is not none or a plain file name'],
    ["handoff", "{ marker: '..' }", 'handoff.marker: ".." is not none or a plain file name'],
    ["handoff", "{ marker: sha256sums }", '"sha256sums" cannot be used: Inlet writes SHA256SUMS itself'],
    ["handoff", "{ marker: reason.json }", '"reason.json" cannot be used: Inlet writes reason.json itself'],
    ["handoff", "{ marker: message.eml }", '"message.eml" cannot be used: Inlet writes message.eml itself'],
    ["handoff", "{ unpack: true }", "handoff.unpack: true is not one of none, beside, instead"],
    ["handoff", "{ deliver: file }", 'handoff.deliver: "file" is not one of folder, files'],
    ["handoff", "{ manifest: outside }", 'handoff.manifest: "outside" is not one of inside, beside, none'],
    [
      "handoff",
      "{ done: done }",
      'handoff.done: "done" is not true, false or the end of a name such as .done',
    ],
    ["handoff", "{ done: .transfer.json }", '".transfer.json" is not true, false or the end of a name'],
    ["handoff", "{ done: ./x }", '"./x" is not true, false or the end of a name'],
    ["handoff", "{ names: '{name}' }", '"{name}" must contain {trackingId} or {transferId}: otherwise files'],
    ["handoff", "{ names: '{trackingId}' }", 'handoff.names: "{trackingId}" must contain {name} once'],
    ["handoff", "{ names: '{name}{name}{trackingId}' }", "must contain {name} once"],
    ["handoff", "{ names: '{trackingId}/{name}' }", "must not contain slashes or control characters"],
    ["handoff", "{ names: '.{trackingId}_{name}' }", "must not begin with a dot"],
    [
      "handoff",
      "{ names: '{trackingid}_{name}' }",
      "unknown placeholder {trackingid}, did you mean {trackingId}?",
    ],
    ["handoff", "{ names: '{trackingId}_{name}}' }", "contains an unmatched { or }"],
    [
      "handoff",
      "{ deliver: files, marker: READY }",
      'handoff.marker: "READY" cannot be used with deliver: files, because no folder is delivered: set done instead',
    ],
    [
      "handoff",
      "{ deliver: files, acknowledgement: DONE }",
      'handoff.acknowledgement: "DONE" cannot be used with deliver: files, because no folder is delivered',
    ],
    [
      "handoff",
      "{ deliver: files, manifest: inside }",
      'handoff.manifest: "inside" cannot be used with deliver: files, because no folder is delivered',
    ],
    ["handoff", "{ command: echo }", "handoff.command: must be a list of a program and its arguments"],
    ["handoff", "{ command: [''] }", "handoff.command[0]: names no program"],
    [
      "handoff",
      '{ command: [a, "b\\0c"] }',
      "handoff.command[1]: contains a NUL, which no argument can hold",
    ],
    ["handoff", "{ commandTimeout: 25h }", 'handoff.commandTimeout: "25h" is longer than 24h'],
    [
      "handoff",
      "{ acknowledgement: transfer.json }",
      '"transfer.json" cannot be used: Inlet writes transfer.json itself',
    ],
    [
      "handoff",
      "{ marker: Done, acknowledgement: DONE }",
      '"DONE" is the marker, which exists from the start',
    ],
    ["handoff", "{ expectWithin: 2w }", '"2w" is not a duration such as 30m, 12h or 7d'],
    ["handoff", "{ expectWithin: forever }", '"forever" is not a duration such as 30m, 12h or 7d'],
    ["handoff", "{ expectWithin: 9999d }", 'handoff.expectWithin: "9999d" is longer than 3650d'],
    ["handoff", "{ keep: { pickedUp: never } }", '"never" is not forever, or a duration such as'],
    ["handoff", "{ keep: { notPickdUp: 1d } }", "unknown key, did you mean notPickedUp?"],
    ["handoff", "{ webhook: { url: https://h.example } }", "handoff.webhook.secret: is missing"],
    ["http", "{ actions: true }", "http.actions: needs http.token or http.tokens"],
    [
      "http",
      "{ actions: true, token: 0123456789abcde }",
      "is too short: a token needs at least 16 characters",
    ],
    ["http", "{ read: token }", "http.read: needs http.token or http.tokens"],
    ["http", "{ read: closed }", 'http.read: "closed" is not one of open, token, token-for-all'],
    [
      "http",
      "{ tokens: [{ name: a, token: 0123456789abcdef, role: admin }] }",
      'http.tokens[0].role: "admin" is not one of read, operate',
    ],
    ["http", "{ tokens: [{ name: a, token: short }] }", "http.tokens[0].token"],
    [
      "http",
      "{ tokens: [{ name: token, token: 0123456789abcdef }], token: 0123456789abcdeX }",
      '"token" is used twice',
    ],
    ["http", "{ tokens: [{ name: 'a b', token: 0123456789abcdef }] }", "http.tokens[0].name"],
    [
      "handoff",
      "{ webhook: { url: ftp://h, secret: s } }",
      "handoff.webhook.url: must be an address such as",
    ],
    [
      "handoff",
      "{ webhook: { url: https://u@h, secret: s } }",
      "webhook.url: must not contain a user or password",
    ],
    [
      "handoff",
      "{ webhook: { url: http://h.example, secret: s } }",
      "handoff.webhook.url: would be called unencrypted: use https, or set handoff.webhook.allowHttp to true",
    ],
    ["handoff", "{ webhook: { url: https://h, secret: s, timeout: 25h } }", '"25h" is longer than 24h'],
    ["work", "/srv/inbox", '"/srv/inbox" is the inbox itself: choose another folder'],
    [
      "work",
      "/srv/inbox/work",
      '"/srv/inbox/work" is inside the inbox, where a delivery could collide with it',
    ],
    [
      "state",
      "/srv/inbox/a/.b",
      '"/srv/inbox/a/.b" is inside the inbox, where a delivery could collide with it',
    ],
  ])("%s: %s", async (key, value, line) => {
    expect(await problemsOf(config({ [key]: value }))).toEqual([expect.stringContaining(line)]);
  });

  test.each([
    ["{ baseUrl: ftp://x }", 'service.baseUrl: "ftp://x" is not the address of a service such as https://'],
    [
      "{ baseUrl: transfer.example.com }",
      '"transfer.example.com" is not the address of a service: write https://transfer.example.com',
    ],
    [
      "{ baseUrl: http://example.com }",
      "http://example.com would send secrets unencrypted: write https://example.com, or set",
    ],
    ["{ baseUrl: 'https://u:hunter2@example.com' }", "service.baseUrl: must not contain a user or password"],
    ["{ baseUrl: 'https://u:hunter2@' }", "service.baseUrl: this is not the address of a service"],
    ["{ baseUrl: 'https://x/?key=hunter2' }", "service.baseUrl: must not contain ? or #"],
    ["{ baseUrl: 'https://x/#hunter2' }", "service.baseUrl: must not contain ? or #"],
    ["{ baseUrl: 'https://x', timeout: soon }", '"soon" is not a duration such as 250ms, 30s, 5m or 1h'],
    ["{ baseUrl: 'https://x', timeout: 30h }", 'service.timeout: "30h" is longer than 24h'],
    ["{ baseUrl: 'https://x', allowHttp: yes }", 'service.allowHttp: "yes" is not true or false'],
    [
      "{ baseUrl: 'https://x', clientId: hunter2 }",
      "must be 50 to 4000 letters and digits, or one of { file",
    ],
    ["{ baseUrl: 'https://x', verification: hunter2 }", "must be clientId, or { token: … }"],
    [
      "{ baseUrl: 'https://x', verification: {} }",
      "service.verification.token: is missing: give text, or one",
    ],
    [
      "{ baseUrl: 'https://x', proxy: hunter2 }",
      "service.proxy: must be the address of a proxy such as http://",
    ],
    ["{ baseUrl: 'https://x', ca: /no/such }", "service.ca: /no/such cannot be read (ENOENT)"],
    [`{ baseUrl: 'https://x', ca: ${join(TLS_FOLDER, "server.key")} }`, "server.key holds no certificate"],
    ["{ baseUrl: 'https://x', ca: inlet.yaml }", "is not a PEM file: it has no line -----BEGIN …-----"],
    [
      "{ baseUrl: 'https://x', acceptLanguage: \"a\\nb\" }",
      '"a\\nb" is not one or more languages such as en',
    ],
    [
      "{}",
      "inlet.yaml:1:1: service.baseUrl: is missing: give the address of the service, or set INLET_SERVICE__",
    ],
    ["{ baseUrl: 7 }", "service.baseUrl: 7 is not the address of a service"],
    [
      "{ baseUrl: transfer.example.com:8443 }",
      "is not the address of a service: write https://transfer.example.com:8443",
    ],
    [
      "{ baseUrl: //transfer.example.com }",
      "is not the address of a service: write https://transfer.example.com",
    ],
    [
      "{ baseUrl: transfer.example.com/t/api }",
      "is not the address of a service: write https://transfer.example.com/t",
    ],
  ])("service: %s", async (service, line) => {
    const problems = await problemsOf(config({ service }));
    expect(problems).toEqual([expect.stringContaining(line)]);
    expect(problems.join()).not.toContain("hunter2");
  });

  test.each([
    // With quotes, the value would be right.
    ["name: 5", "name: 5 is not a name without slashes that does not begin with a dot: put it in quotes"],
    [
      "name: true",
      "name: true is not a name without slashes that does not begin with a dot: put it in quotes",
    ],
    // With quotes, it would be wrong too.
    ["email: 5", "email: 5 is not an email address"],
    ["fetch: true", "fetch: true is not one of auto, files, zip"],
    ["layout: 5", "layout: 5 is not a relative path with placeholders"],
    // Without a unit.
    ["poll: 60", "poll: 60 is not a duration such as 250ms, 30s, 5m or 1h: write 60s"],
    // YAML reads these as text.
    ["paused: yes", 'paused: "yes" is not true or false: write true'],
    ["paused: Off", 'paused: "Off" is not true or false: write false'],
    ["paused: maybe", 'paused: "maybe" is not true or false'],
  ])("the remedy is right for %s", async (key, line) => {
    const email = key.startsWith("email") ? "" : "email: a@b, ";
    const problems = await problemsOf(config({ mailboxes: `[{ ${email}${key} }]` }));
    expect(problems).toEqual([
      expect.stringMatching(new RegExp(`mailboxes\\[0\\]\\.${line.replace(/[.?]/g, "\\$&")}$`)),
    ]);
  });

  test.each([
    [
      "keep: { ledger: 90 }",
      "keep.ledger: 90 is not forever, or a duration such as 30m, 12h or 7d: write 90d",
    ],
    ["limits: { bandwidth: 5 }", "or a list of rates and when they apply: write 5MiB/s"],
    [
      "http: { listen: 8460 }",
      "http.listen: 8460 is not false, a host and a port such as 127.0.0.1:8460, or unix: and a path",
    ],
    ...["x", "ftp://h", "https://h/", "https://h?a", "https://h#a"].map((url) => [
      `http: { publicUrl: '${url}' }`,
      "http.publicUrl: must be an address such as https://inlet.example.com, without a slash at its end",
    ]),
    ["http: { publicUrl: 'https://u:p@h' }", "http.publicUrl: must not contain a user or password"],
  ])("the remedy is right for %s", async (line, end) => {
    const [problem = ""] = await problemsOf(`${config({})}\n${line}\n`);
    expect(problem.endsWith(end), problem).toBe(true);
  });

  test("I4 no leaks: the remedy for a secret that is a number does not repeat it", async () => {
    const problems = await problemsOf(`${config({})}\nhttp: { token: 90210 }\n`);
    expect(problems).toEqual([expect.stringMatching(/http\.token: must be text, or .*: put it in quotes$/)]);
    expect(problems.join()).not.toContain("90210");
  });

  test("service: cert without key, and key without cert", async () => {
    const [cert, key] = [
      await problemsOf(config({ service: "{ baseUrl: 'https://x', cert: a.pem }" })),
      await problemsOf(config({ service: "{ baseUrl: 'https://x', key: a.pem }" })),
    ];
    expect(cert[0]).toContain("service.cert: needs its private key too: set key");
    expect(key[0]).toContain("service.key: needs its certificate too: set cert");
  });

  test.each([
    ["[]", "mailboxes: must be a list of at least one mailbox"],
    ["orders@example.com", "mailboxes: must be a list of at least one mailbox"],
    ["[orders@example.com]", "mailboxes[0]: must be a mailbox"],
    ["[{ name: x }]", "inlet.yaml:3:13: mailboxes[0].email: is missing: give an email address"],
    ["[{ email: nobody }]", 'mailboxes[0].email: "nobody" is not an email address'],
    ["[{ email: a@b, name: a/b }]", '"a/b" is not a name without slashes that does not begin with a dot'],
    [
      "[{ email: a@b, name: .inlet }]",
      '".inlet" is not a name without slashes that does not begin with a dot',
    ],
    ["[{ email: a@b }, { email: A@B }]", 'mailboxes[1].email: "A@B" is already used by mailboxes[0]'],
    [
      "[{ email: a@b }, { email: c@d, name: A@b }]",
      'mailboxes[1].name: "A@b" is already used by mailboxes[0]',
    ],
    ["[{ email: a@b, name: X }, { email: c@d, name: x }]", '"x" is already used by mailboxes[0]'],
    ["[{ email: a@b, poll: 0s }]", '"0s" is not a duration'],
    ["[{ email: a@b, poll: 25h }]", 'mailboxes[0].poll: "25h" is longer than 24h'],
    ["[{ email: a@b, pol: 5m }]", "inlet.yaml:3:27: mailboxes[0].pol: unknown key, did you mean poll?"],
    ["[{ email: a@b, fetch: fast }]", 'mailboxes[0].fetch: "fast" is not one of auto, files, zip'],
    ["[{ email: a@b, passwordAttempts: 99 }]", "99 is not a whole number from 1 to 10"],
    ["[{ email: a@b, paused: 'true' }]", '"true" is not true or false: write it without quotes'],
    ["[{ email: a@b, quiet: sat }]", "mailboxes[0].quiet: must be a list of weekly windows such as mon-fri"],
    [
      "[{ email: a@b, quiet: [sat, 'mon 8-18'] }]",
      'mailboxes[0].quiet[1]: "mon 8-18" is not a weekly window such as mon-fri 08:00-18:00: "8" is not a time such as',
    ],
    [
      "[{ email: a@b, quiet: [5] }]",
      "mailboxes[0].quiet[0]: 5 is not a weekly window such as mon-fri 08:00-18:00",
    ],
    [
      "[{ email: a@b, quiet: [mon-fri, 'sat,sun'] }]",
      "mailboxes[0].quiet: leaves no time for downloads: to stop the mailbox, set paused",
    ],
    ["[{ email: a@b, expect: [{ by: '06:00' }] }]", "mailboxes[0].expect[0].sender: is missing: give text"],
    [
      "[{ email: a@b, expect: [{ sender: x }] }]",
      "expect[0].by: is missing: give a time of day such as 06:00",
    ],
    [
      "[{ email: a@b, expect: [{ sender: x, by: 6am }] }]",
      'expect[0].by: "6am" is not a time of day such as 06:00',
    ],
    ["[{ email: a@b, expect: [{ sender: x, by: 25:00 }] }]", '"25:00" is not a time of day such as 06:00'],
    [
      "[{ email: a@b, expect: [{ sender: x, by: 06:00, days: weekdays }] }]",
      'expect[0].days: "weekdays" is not days such as mon-fri: "weekdays" is not a day',
    ],
    ["[{ email: a@b, expect: [{ sender: x, by: 06:00, within: 48h }] }]", 'within: "48h" is longer than 24h'],
    [
      "[{ email: a@b, expect: [{ sender: x, by: 06:00 }, { sender: x, by: 06:00 }] }]",
      "mailboxes[0].expect[1]: repeats expect[0]",
    ],
    [
      "[{ email: a@b, expect: [{ sender: x, at: 06:00, by: 06:00 }] }]",
      "expect[0].at: unknown key, did you mean by?",
    ],
    [
      "[{ email: a@b, service: { clientID: x } }]",
      "mailboxes[0].service.clientID: unknown key, did you mean clientId?",
    ],
  ])("mailboxes: %s", async (mailboxes, line) => {
    expect(await problemsOf(config({ mailboxes }))).toEqual([expect.stringContaining(line)]);
  });

  test.each([
    ["/srv/{trackingId}", "must be relative: it begins inside the inbox"],
    ["../{trackingId}", "must not contain a part that begins with a dot"],
    ["{sender}/.x/{trackingId}", "must not contain a part that begins with a dot"],
    ["a//{trackingId}", "must not contain an empty part between slashes"],
    ["{trackingId}/", "must not contain an empty part between slashes"],
    ["a\\\\{trackingId}", "must not contain backslashes or control characters"],
    ["{mailbox}/{sneder}/{trackingId}", "contains the unknown placeholder {sneder}, did you mean {sender}?"],
    ["{x}/{trackingId}", "contains the unknown placeholder {x}, known: {mailbox} {sender} {senderDomain}"],
    ["{trackingId}/{day", "contains an unmatched { or }"],
    [
      "{mailbox}/{subject}",
      "must contain {trackingId} or {transferId}: otherwise two transfers could have the same",
    ],
  ])("layout: %s", async (layout, line) => {
    const mailboxes = `[{ email: a@b, layout: "${layout}" }]`;
    expect(await problemsOf(config({ mailboxes }))).toEqual([expect.stringContaining(line)]);
  });

  test.each([
    ["hunter2", "passwords: must be a list of rules"],
    ["[hunter2]", "passwords[0]: must be a rule"],
    ["[{ sender: x }]", `passwords[0].password: is missing: give ${SECRET_FORMS}`],
    [
      "[{ password: hunter2 }]",
      "passwords[0]: must say which transfers it opens: set sender, trackingId or both",
    ],
    ["[{ sender: x, password: 1234 }]", `passwords[0].password: must be ${SECRET_FORMS}: put it in quotes`],
    [
      "[{ sender: x, pasword: hunter2, password: x }]",
      "passwords[0].pasword: unknown key, did you mean password?",
    ],
    [
      "[{ sender: x, password: { hunter2 } }]",
      `passwords[0].password: has an unknown key, must be ${SECRET_FORMS}`,
    ],
    [
      "[{ sender: x, password: { flie: hunter2 } }]",
      "passwords[0].password: has an unknown key, did you mean file?",
    ],
    [
      "[{ sender: x, password: { env: A, file: hunter2 } }]",
      `passwords[0].password: must be ${SECRET_FORMS}`,
    ],
    ["[{ sender: x, password: { env: NOPE } }]", "passwords[0].password.env: variable NOPE is not set"],
    ["[{ sender: x, password: { file: nope } }]", /password\.file: file .*\/nope does not exist$/],
    ["[{ sender: x, password: { credential: ../x } }]", "password.credential: must be a plain file name"],
    [
      "[{ sender: x, password: { credential: x } }]",
      /because CREDENTIALS_DIRECTORY is not set: systemd passes credentials only to its units/,
    ],
    [
      "[{ sender: x, password: { command: [] } }]",
      "password.command: must be a list of a program and its arguments",
    ],
    ["[{ sender: x, password: { command: hunter2 } }]", "password.command: must be a list of a program"],
  ])("passwords: %s", async (passwords, line) => {
    const problems = await problemsOf(config({ mailboxes: `[{ email: a@b, passwords: ${passwords} }]` }));
    expect(problems).toEqual([
      typeof line === "string" ? expect.stringContaining(line) : expect.stringMatching(line),
    ]);
    expect(problems.join()).not.toContain("hunter2");
  });

  test.each(["__proto__: 1\n", "__internal__: 1\n", "constructor: 1\n"])(
    "%j is an unknown key like any other",
    async (line) => {
      expect(await problemsOf(config({}) + line)).toEqual([expect.stringContaining("unknown key")]);
    },
  );
});

describe("problems", () => {
  test("are reported together: those of the environment first, then in the order of the file", async () => {
    const text = config({ inbox: "~", mailboxes: "[{ email: a@b, poll: soon }, { email: A@B }]", stat: "x" });
    expect(await problemsOf(text, { INLET_LIMITS__TRANSFERS: "many", INLET_SERVICE_BASEURL: "x" })).toEqual([
      "INLET_SERVICE_BASEURL: no such variable, did you mean INLET_SERVICE__BASEURL?",
      'INLET_LIMITS__TRANSFERS: limits.transfers: "many" is not a whole number from 1 to 1000',
      "inlet.yaml:2:1: inbox: has no value: give a path, or remove the key",
      expect.stringContaining("inlet.yaml:3:27: mailboxes[0].poll: "),
      expect.stringContaining("inlet.yaml:3:43: mailboxes[1].email: "),
      "inlet.yaml:4:1: stat: unknown key, did you mean state?",
    ]);
  });

  test("of an empty file name every required key", async () => {
    expect(await problemsOf("# nothing yet\n")).toEqual([
      "inlet.yaml: inbox: is missing: give a path, or set INLET_INBOX",
      "inlet.yaml: mailboxes: is missing: give a list of at least one mailbox, or set INLET_MAILBOXES",
      "inlet.yaml: service.baseUrl: is missing: give the address of the service, or set INLET_SERVICE__BASEURL",
    ]);
  });

  test("in YAML are reported by position only", async () => {
    expect(await problemsOf("inbox: /x\n\twork: /y\n")).toEqual([
      "inlet.yaml:2:1: tabs cannot be used for indentation: use spaces",
    ]);
  });

  test("in a variable with JSON name the variable and the key inside", async () => {
    const env = { INLET_MAILBOXES: '[{"email":"a@b","pol":"5m","passwords":[{"sender":"x","password":7}]}]' };
    expect(await problemsOf(config({}), env)).toEqual([
      "INLET_MAILBOXES: mailboxes[0].pol: unknown key, did you mean poll?",
      `INLET_MAILBOXES: mailboxes[0].passwords[0].password: must be ${SECRET_FORMS}: put it in quotes`,
    ]);
  });

  test("with long or strange text stay on one short line", async () => {
    const [problem = "", ...more] = await problemsOf(
      config({ limits: `{ transfers: "a\\nb${"x".repeat(999)}" }` }),
    );
    expect(more).toEqual([]);
    expect(problem.length).toBeLessThan(250);
    const [key = ""] = await problemsOf(`${config({})}"strange\\nkey": 1\n`);
    expect(key).toContain('"strange\\nkey": unknown key');
  });
});

describe("secrets", () => {
  const passwords = `[{ sender: x, password: hunter2 }]`;
  const service = `{ baseUrl: 'https://x', clientId: ${CLIENT_ID}, verification: { token: hunter2 }, proxy: 'http://u:hunter2@p' }`;

  test("do not show in printed settings", async () => {
    const settings = await load(config({ service, mailboxes: `[{ email: a@b, passwords: ${passwords} }]` }));
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
      config({
        service,
        mailboxes: `[{ email: a, passwords: ${passwords} }]`,
        queue: "redis://:hunter2@host/hunter2@",
      }),
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
