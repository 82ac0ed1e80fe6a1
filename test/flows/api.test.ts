/** `inlet api`, for people and programs, against the simulated service. */

import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Operation, Scenario } from "../../simulator/scenario.ts";
import { makeFolder, runOnTerminal, runProgram, startProgram } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

const SENDER = "anna@supplier.example";

/** Characters that could move a cursor, hide or reorder text: all but tabs and newlines. */
const STEERING = /(?![\t\r\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

describe("lists", () => {
  test("the transfers that an address has received, for programs and for people", async () => {
    const { api, options, trackingId, transferId } = await setUp();
    const { exitCode, stdout, stderr } = await api("received", MAILBOX, "--active");
    expect([exitCode, stderr]).toEqual([0, ""]);
    const cells = stdout.trimEnd().split("\t");
    expect(cells.slice(0, 5)).toEqual([trackingId, transferId, SENDER, "active", "MANUAL"]);
    const table = await runOnTerminal(["api", "received", MAILBOX], options);
    expect(table.stdout).toMatch(/TRACKING ID +TRANSFER ID +SENDER +STATE +PASSWORD MODE +EXPIRES/);
  });

  test("the transfers that an address has sent, with both operations, in pages of any size", async () => {
    const transfers = Array.from({ length: 5 }, () => transferPlan());
    const { api } = await setUp({ transfers });
    for (const command of ["sent", "sent-legacy"]) {
      const all = await api(command, SENDER, "--page-size", "2");
      expect(all.stdout.trim().split("\n")).toHaveLength(5);
      const page = await api(command, SENDER, "--page-size", "2", "--page", "3");
      expect(page.stdout.trim().split("\n")).toHaveLength(1);
    }
    const [, state, recipient, href] =
      (await api("sent-legacy", SENDER)).stdout.split("\n")[0]?.split("\t") ?? [];
    expect([state, recipient]).toEqual(["active", MAILBOX]);
    expect(href).toMatch(/^\/api\/users\/anna%40supplier\.example\/transfers\/./);
  });

  test("the rest where an entry is unusable, and names that entry", async () => {
    const { api, simulator } = await setUp({ transfers: [transferPlan(), transferPlan()] });
    simulator.addFault({ on: "received", does: { kind: "alter", path: "data.0.trackingId", value: 1 } });
    const { exitCode, stdout, stderr } = await api("received", MAILBOX);
    expect(exitCode).toBe(1);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain("entry 1: trackingId should be string");
  });

  test("every requested field as the service sent it, but no link", async () => {
    const { api, simulator, transferId, trackingId, fileIds } = await setUp({
      transfers: [transferPlan({ passwordMode: "NONE", message: "Psst" })],
    });
    const fields = "status(recipients,state),transfer(files(id,size),notificationMessage)";
    const { stdout } = await api("--json", "received", MAILBOX, "--fields", fields);
    expect(stdout).not.toContain("download?id=");
    expect(stdout).not.toContain("password");
    const [entry] = JSON.parse(stdout);
    const recipients = [{ mail: MAILBOX, transferId }];
    expect(entry).toMatchObject({ trackingId, state: "active", recipients, addressees: {} });
    expect(entry.raw).toMatchObject({
      trackingId,
      status: { recipients: [{ id: transferId, notificationFailed: false }] },
      transfer: {
        files: [
          { id: fileIds[0], size: 5 },
          { id: fileIds[1], size: 8 },
        ],
        notificationMessage: { subject: "Order 4711" },
      },
    });
    // A later service may know the field.
    await api("received", MAILBOX, "--fields", "transfer(ofTomorrow(x))");
    expect(simulator.requests().at(-1)?.query["fields"]).toEqual(["trackingId,transfer(ofTomorrow(x))"]);
    await api("received", MAILBOX, "--fields", "default");
    expect(simulator.requests().at(-1)?.query).not.toHaveProperty("fields");
    const wrong = await api("received", MAILBOX, "--fields", "status(state");
    expect(wrong.exitCode).toBe(3);
    expect(wrong.stderr).toContain("HTTP 400, error 1004");
  });
});

describe("shows", () => {
  test("information, files and checksums of a transfer", async () => {
    const { api, transferId, fileIds } = await setUp();
    expect((await api("info", transferId)).stdout).toBe("13\tSHA-256\n");
    const files = (await api("files", transferId)).stdout.trim().split("\n");
    expect(files.map((line) => line.split("\t")[0])).toEqual(fileIds);
    const { stdout, stderr } = await api("checksums", transferId);
    expect(stdout).toMatch(/^SHA-256\t[0-9a-f]{64}\ta.txt\n/);
    expect(stderr).toBe("Subject: Order 4711\n");
    const json = JSON.parse((await api("--json", "checksums", transferId)).stdout);
    expect(json).toMatchObject({ subject: "Order 4711", unlisted: [], missing: [] });
    const file = join(await makeFolder(), "checksums.csv");
    expect((await api("checksums", transferId, "-o", file)).exitCode).toBe(0);
    expect(await readFile(file, "utf8")).toContain("Order 4711");
  });

  test("password rules, a generated password, and the check of one", async () => {
    const { api } = await setUp({ passwordRules: { minimumLengthRequired: 8, digitsRequired: true } });
    expect((await api("password", "rules")).stdout).toContain("minimumLengthRequired\tlength 8\n");
    const { stdout: password } = await api("password", "generate");
    expect(password.trim().length).toBeGreaterThanOrEqual(8);
    const check = ["password", "check", "--password-file", "-"];
    expect(await api(...check)).toMatchObject({ exitCode: 0 });
    const strict = await setUp({ passwordRules: { minimumLengthRequired: 100 } });
    expect(await strict.api(...check)).toMatchObject({
      exitCode: 3,
      stdout: expect.stringContaining("minimumLengthRequired\t"),
    });
  });

  test("language packs, and downloads a file of one", async () => {
    const { api, folder } = await setUp();
    const all = (await api("languages", "list")).stdout.trim().split("\n");
    const threes = (await api("languages", "list", "--major-version", "3")).stdout.trim().split("\n");
    expect(threes.length).toBeLessThan(all.length);
    expect((await api("languages", "show", "en-US_2")).stdout).toMatch(/^en-US_2\ten-US\t2\./);
    expect(await api("languages", "get", "en-US_2", "messages.properties")).toMatchObject({ exitCode: 0 });
    expect(await readdir(folder)).toContain("messages.properties");
    const shown = JSON.parse((await api("--json", "languages", "show", "en-US_2")).stdout);
    expect(shown).toMatchObject({ href: "/api/products/api.rest/language-packs/en-US_2" });
  });

  test("versions, verification and a fresh client id", async () => {
    const { api, simulator } = await setUp();
    expect((await api("status")).stdout).toBe("1.15\n");
    expect((await api("client-id")).stdout).toMatch(/^[A-Za-z0-9]{50,}\n$/);
    const unverified = await api("verification", "status", MAILBOX);
    expect(unverified).toMatchObject({ exitCode: 3, stdout: expect.stringMatching(/^no\t\t.*clientid/) });
    expect((await api("verification", "token", MAILBOX)).stdout.trim().length).toBeGreaterThan(10);
    await api("verification", "mail-code", MAILBOX);
    const [code] = simulator.mailedCodes(MAILBOX);
    const env = { INLET_SERVICE__BASEURL: simulator.url, INLET_SERVICE__CLIENTID: simulator.clientId };
    const args = ["api", "verification", "token", MAILBOX, "--code-file", "-"];
    const token = await runProgram(args, { env, input: `${code}\n` });
    const poll = await runProgram(["api", "received", MAILBOX], {
      env: { ...env, INLET_SERVICE__VERIFICATION__TOKEN: token.stdout.trim() },
    });
    expect(poll.exitCode).toBe(0);
  });

  test("that a service is too old", async () => {
    const { api } = await setUp({ apiVersion: "1.12" });
    const unsaid = await api("status");
    expect(unsaid).toMatchObject({ exitCode: 3, stderr: expect.stringContaining("older than 1.13") });
    const tooOld = await setUp({ apiVersion: "1.9" });
    expect((await tooOld.api("received", MAILBOX)).stderr).toContain("Inlet needs 1.12 or a newer 1.x");
  });
});

describe("downloads", () => {
  test("every file, or one by its id or name, verified, under its own name or to a chosen path, never over an existing file", async () => {
    const { api, transferId, fileIds, folder } = await setUp();
    await writeFile(join(folder, "a.txt"), "mine");
    const { exitCode, stderr } = await api("get", transferId, "a.txt");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("The target exists already, and Inlet never overwrites a file: a.txt.");
    expect((await api("get", transferId)).stdout).toBe("Größe, 2.csv\t8\tSHA-256\n");
    expect(await readFile(join(folder, "a.txt"), "utf8")).toBe("mine");
    for (const name of await readdir(folder)) await rm(join(folder, name));
    const all = await api("get", transferId);
    expect([all.exitCode, all.stdout]).toEqual([0, "a.txt\t5\tSHA-256\nGröße, 2.csv\t8\tSHA-256\n"]);
    expect(await readFile(join(folder, "a.txt"), "utf8")).toBe("Hello");
    expect(await api("get", transferId, fileIds[0] ?? "", "--output", "x")).toMatchObject({ exitCode: 0 });
    expect(await api("get", transferId, "a.txt", "--output", "y")).toMatchObject({ exitCode: 0 });
    expect((await readdir(folder)).toSorted()).toEqual(["Größe, 2.csv", "a.txt", "x", "y"]);
  });

  test("a ZIP and an EML, and reports in JSON how they were verified", async () => {
    const { api, transferId, folder, fileIds } = await setUp({
      transfers: [transferPlan({ message: "Hi" })],
    });
    const zip = await api("--json", "zip", transferId, "--include-checksum-file");
    expect(JSON.parse(zip.stdout)).toMatchObject([{ path: `${transferId}.zip`, verifiedBy: ["SHA-256"] }]);
    const part = await api("zip", transferId, "--only", fileIds[0] ?? "", "-o", "part.zip");
    expect(part).toMatchObject({ exitCode: 0 });
    const unproven = {
      name: "unproven",
      text: "2",
      listChecksum: "missing",
      csvChecksum: "missing",
    } as const;
    const mixed = await setUp({ transfers: [transferPlan({ files: [{ name: "x", text: "1" }, unproven] })] });
    const partly = await mixed.api("--json", "zip", mixed.transferId);
    expect(JSON.parse(partly.stdout)).toMatchObject([{ verifiedBy: [] }]);
    const eml = await api("eml", transferId, "--threshold", "1");
    expect(eml.stdout).toContain("nothing: there is no checksum");
    expect((await readdir(folder)).toSorted()).toEqual(
      [`${transferId}.eml`, `${transferId}.zip`, "part.zip"].toSorted(),
    );
  });

  test("the good files beside a bad one, into a chosen folder", async () => {
    const files = [
      { name: "bad", text: "1", listChecksum: "wrong" },
      { name: "../harm", text: "2" },
      { name: "good", text: "3" },
    ] as const;
    const { api, transferId, folder } = await setUp({ transfers: [transferPlan({ files })] });
    await mkdir(join(folder, "into"));
    const { exitCode, stdout, stderr } = await api("get", transferId, "-o", "into");
    expect([exitCode, stdout]).toEqual([3, "into/good\t1\tSHA-256\n"]);
    expect(stderr).toContain("do not match the sender's checksum");
    expect(stderr).toContain('is not safe to use here: "../harm"');
    const several = await api("get", transferId, "-o", "nowhere");
    expect(several).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("--output must be an existing folder"),
    });
  });

  test("nothing where bytes are wrong, missing or too many, or the connection breaks", async () => {
    const { api, transferId, folder, simulator } = await setUp();
    for (const [does, message, exitCode] of [
      [{ kind: "corrupt", at: 2 }, "do not match the sender's checksum", 3],
      [{ kind: "truncate", afterBytes: 3 }, "3 bytes instead of 5", 3],
      [{ kind: "lengthen", bytes: 3 }, "more than the announced 5 bytes", 3],
      [{ kind: "reset", afterBytes: 2 }, "The connection was lost", 4],
    ] as const) {
      simulator.addFault({ on: "file", does });
      const result = await api("get", transferId, "a.txt");
      expect(result).toMatchObject({ exitCode, stderr: expect.stringContaining(message) });
      expect(await readdir(folder)).toEqual([]);
    }
  });

  test("nothing if the file list disagrees with the checksums file or the ZIP", async () => {
    const files = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" }] as const;
    const { api, transferId, folder, simulator } = await setUp({ transfers: [transferPlan({ files })] });
    expect(await api("get", transferId)).toMatchObject({ exitCode: 3 });
    expect(await api("zip", transferId)).toMatchObject({ exitCode: 3 });
    simulator.addFault({ on: "zip", does: { kind: "truncate", afterBytes: 40 } });
    const cut = await api("zip", transferId);
    expect(cut).toMatchObject({ exitCode: 3, stderr: expect.stringContaining("The ZIP does not match") });
    expect(await readdir(folder)).toEqual([]);
  });

  test("nothing under a harmful name", async () => {
    const names = ["../outside", "/etc/passwd", "-rf", ".profile", "a\u0000b", "..", "x".repeat(256)];
    const transfers = names.map((name) => transferPlan({ files: [{ name, text: "x" }] }));
    const { api, simulator, folder } = await setUp({ transfers });
    for (const { recipients } of simulator.transfers()) {
      const { exitCode, stderr } = await api("get", recipients[0]?.transferId ?? "");
      expect(exitCode).toBe(2);
      expect(stderr).toContain("The sender's file name is not safe to use here");
    }
    for (const command of ["zip", "eml"]) {
      expect(await api(command, "a/b")).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('"a/b.'),
      });
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test("with a progress bar for people", async () => {
    const files = [{ name: "large.bin", generate: { bytes: 30_000_000 } }];
    const { options, transferId } = await setUp({ transfers: [transferPlan({ files })] });
    const env = { ...options.env, INLET_PASSWORD: PASSWORD, COLUMNS: "120" };
    const { stdout, exitCode } = await runOnTerminal(["api", "get", transferId], { ...options, env });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/[█░]{24} +\d+% .* of 29 MiB .*\/s/);
    expect(stdout).toMatch(/PATH +BYTES +VERIFIED BY/);
  });

  test("until it is interrupted, without leaving anything behind", async () => {
    const files = [{ name: "large.bin", generate: { bytes: 30_000_000 } }];
    const { options, transferId, folder, simulator } = await setUp({ transfers: [transferPlan({ files })] });
    simulator.addFault({ on: "file", does: { kind: "stall", afterBytes: 1_000_000 } });
    const child = startProgram(["api", "get", transferId], {
      ...options,
      env: { ...options.env, INLET_PASSWORD: PASSWORD },
    });
    await expect.poll(() => readdir(folder), { timeout: 20_000 }).toHaveLength(1);
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGINT");
    expect(await ended).toBe(130);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("passwords", () => {
  const prompt = "Password of transfer";

  test("come from a file, the environment or the terminal, and are shown nowhere", async () => {
    const { options, transferId, folder } = await setUp();
    await writeFile(join(folder, "secret"), `\ufeff${PASSWORD}\n`);
    const info = ["api", "info", transferId];
    const env = { ...options.env, INLET_PASSWORD: PASSWORD };
    const ways = [
      await runProgram([...info, "--password-file", "secret"], options),
      await runProgram(info, { ...options, env }),
      await runOnTerminal(info, { ...options, input: `${PASSWORD}\n`, prompt }),
    ];
    for (const way of ways) {
      expect(way.exitCode).toBe(0);
      expect(way.stdout + way.stderr).not.toContain(PASSWORD);
    }
    const none = await runProgram(info, options);
    expect(none).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("no password: add --password-file"),
    });
  });

  test("that are wrong are sent only once", async () => {
    const { options, transferId, trackingId, simulator } = await setUp();
    for (const command of ["get", "zip", "checksums", "files"]) {
      const args = ["api", command, transferId, "--password-file", "-"];
      const { exitCode, stderr } = await runProgram(args, { ...options, input: `wrong-${command}` });
      expect(exitCode).toBe(3);
      expect(stderr).toContain("The service refused the transfer password");
      expect(stderr).not.toContain(`wrong-${command}`);
    }
    expect(simulator.refusedPasswords(trackingId)).toHaveLength(4);
  });

  test("that are not one line of UTF-8 text, or not typed to the end, are never sent", async () => {
    const { options, transferId, simulator, folder } = await setUp();
    const bad = [Buffer.from("M\xfcller", "latin1"), `${PASSWORD}\nmore\n`, "a\u0000b"];
    for (const content of bad) {
      await writeFile(join(folder, "bad"), content);
      const result = await runProgram(["api", "info", transferId, "--password-file", "bad"], options);
      expect(result).toMatchObject({ exitCode: 3, stderr: expect.stringContaining("nothing was sent") });
    }
    for (const [input, code] of [
      ["\u0003", 130],
      ["\u0003\u0004", 130],
      ["\u0004", 2],
    ] as const) {
      const ended = await runOnTerminal(["api", "info", transferId], { ...options, input, prompt });
      expect(ended.exitCode).toBe(code);
      expect(ended.stdout).not.toMatch(/^\s+at /m);
    }
    expect(simulator.requests()).toEqual([]);
  });
});

describe("the configuration file", () => {
  test("names the service, and a mailbox's own service", async () => {
    const { folder, simulator, transferId } = await setUp();
    await writeFile(join(folder, "client-id"), `${simulator.clientId}\n`, { mode: 0o600 });
    const text = `
service: { baseUrl: http://127.0.0.1:1, clientId: { file: client-id } }
mailboxes: [{ email: ${MAILBOX}, name: orders, service: { baseUrl: "${simulator.url}" } }]
`;
    const config = join(folder, "inlet.yaml");
    await writeFile(config, text);
    const common = await runProgram(["api", "--config", config, "received", MAILBOX]);
    expect(common).toMatchObject({ exitCode: 4, stdout: "" });
    const ways = [
      await runProgram(["api", "--config", config, "--mailbox", "orders", "received", MAILBOX]),
      await runProgram(["api", "--base-url", simulator.url, "received", MAILBOX], {
        env: { INLET_CONFIG: config },
      }),
      await runProgram(["api", "received", MAILBOX], {
        env: { INLET_CONFIG: config, INLET_SERVICE__BASEURL: simulator.url },
      }),
    ];
    for (const { exitCode, stdout } of ways) {
      expect(exitCode).toBe(0);
      expect(stdout).toContain(transferId);
    }
    expect(await readFile(config, "utf8")).toBe(text);
    expect((await readdir(folder)).toSorted()).toEqual(["client-id", "inlet.yaml"]);
  });

  test("says how several file ids are sent", async () => {
    const { folder, options, simulator, transferId, fileIds } = await setUp();
    const config = join(folder, "inlet.yaml");
    await writeFile(config, `service: { baseUrl: "${simulator.url}", fileIdList: comma }\n`);
    const env = { INLET_CONFIG: config, INLET_PASSWORD: PASSWORD };
    const zip = await runProgram(["api", "zip", transferId, "--only", ...fileIds], { ...options, env });
    expect([zip.exitCode, zip.stderr]).toEqual([0, ""]);
    expect(simulator.requests().at(-1)?.query["customized-files-ids"]).toEqual([fileIds.join(",")]);
  });
});

describe("bad input", () => {
  const TO_NOWHERE = "api --base-url http://[::1]:1 status";

  test.each([
    [{}, "api status", "no service is configured: add --base-url, or set INLET_SERVICE__BASEURL"],
    [{ BASEURL: "ftp://x" }, "api status", '"ftp://x" is not the address of a service'],
    [{ BASEURL: "http://example.com" }, "api status", "would send secrets unencrypted"],
    [{ BASEURL: "https://u:p4ss@example.com" }, "api status", "must not contain a user or password"],
    [{ CLIENTID: "short" }, TO_NOWHERE, "must be 50 to 4000 letters"],
    [{ TIMEOUT: "soon" }, TO_NOWHERE, "is not a duration"],
    [{ CA: "/no/such" }, TO_NOWHERE, "/no/such cannot be read"],
    [{}, "api --base-url http://[::1]:1 received a@b", "set service.clientId or INLET_SERVICE__CLIENTID"],
    [{}, "api received a@b --page 1e3", "whole number from 1 to 1000000"],
    [{}, "api sent a@b --page-size 101", "whole number from 1 to 100."],
    [{}, "api sent-legacy a@b --page-size 0x10", "whole number from 1 to 100."],
    [{}, "api languages list --major-version Infinity", "whole number from 1"],
    [{}, "list --limit 0x10", "whole number from 1 to 100000"],
    [{}, "list --state lost", "Allowed choices are discovered, downloading"],
    [{}, "history --since yesterday", "an age (30m, 12h, 7d, 4w)"],
    [{}, "once --log-level silly", "Allowed choices are debug, info, warn, error"],
    [{}, "simulate --port 65536", "whole number from 0 to 65535"],
    [{}, "api eml x --threshold ", "whole number from 1 to 1000000"],
    [{}, "api zip x --only a --except b", "cannot be used with"],
    [{}, "api infos", "Did you mean info"],
    [{}, "nonsense", "unknown command 'nonsense'"],
  ] as const)("gets a sentence that names it: %j %s", async (service, line, message) => {
    const env = Object.fromEntries(Object.entries(service).map(([k, v]) => [`INLET_SERVICE__${k}`, v]));
    const { exitCode, stdout, stderr } = await runProgram(line.split(" "), { env });
    expect([exitCode, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("p4ss");
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("is reported as JSON with --json", async () => {
    const args = ["api", "--json", "--base-url", "http://127.0.0.1:1", "status"];
    const { exitCode, stderr } = await runProgram(args);
    expect(exitCode).toBe(4);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "SERVICE_UNREACHABLE", verdict: "retry" } });
  });

  test("a secret with control characters is refused", async () => {
    const { api, simulator } = await setUp();
    for (const [on, key, args] of [
      ["password-generate", "password", ["password", "generate"]],
      ["client-id", "clientId", ["client-id"]],
      ["verification-token", "token", ["verification", "token", MAILBOX]],
    ] as const) {
      for (const value of ["a\u001b[2Jb", "a\nb", "a\u202eb", "a\u2028b", "a\u009b1mb"]) {
        simulator.addFault({ on, does: { kind: "alter", path: `data.${key}`, value } });
        const { exitCode, stdout, stderr } = await api(...args);
        expect([exitCode, stdout]).toEqual([4, ""]);
        expect(stderr).toContain(`data.${key} should be`);
        expect(stderr).not.toMatch(STEERING);
      }
    }
  });

  test("names, rules, packs, lists and refusals of the service reach the terminal as data", async () => {
    const text = "\u001b[2J\u202e\u009b";
    const { options, simulator, transferId } = await setUp({
      transfers: [transferPlan({ files: [{ name: text, text: "x" }], subject: text })],
    });
    const alter = (on: Operation, path: string) =>
      simulator.addFault({ on, times: "always", does: { kind: "alter", path, value: text } });
    alter("password-rules", "data.0.name");
    alter("languages", "data.0.displayName");
    alter("languages", "data.0.href");
    alter("sent-legacy", "data.0.href");
    alter("sent", "data.0.status.recipients.0.mail");
    alter("received", "data.0.status.sender.email");
    alter("verification", "data.verificationMethods");
    const refusal = { kind: "error", status: 403, errorCode: 3010, errorMessage: text } as const;
    simulator.addFault({ on: "status", times: "always", does: refusal });
    const env = { ...options.env, INLET_PASSWORD: PASSWORD };
    for (const line of [
      ...[`checksums ${transferId}`, "password rules", "languages list", `sent-legacy ${SENDER}`],
      ...[`sent ${SENDER}`, `received ${MAILBOX}`, `verification status ${MAILBOX}`, "status"],
    ]) {
      for (const args of [line, `${line} --json`]) {
        const { stdout, stderr } = await runProgram(["api", ...args.split(" ")], { ...options, env });
        expect(stdout + stderr).not.toMatch(STEERING);
      }
    }
  });
});

/** `api` has the service in its environment, and the password on standard input. */
async function setUp(scenario: Scenario = {}) {
  const simulator = await openTestSimulator({ transfers: [transferPlan()], ...scenario });
  const folder = await makeFolder();
  const env = { INLET_SERVICE__BASEURL: simulator.url, INLET_SERVICE__CLIENTID: simulator.clientId };
  const options = { env, cwd: folder };
  const [transfer] = simulator.transfers();
  const transferId = transfer?.recipients[0]?.transferId ?? "";
  return {
    simulator,
    folder,
    transferId,
    trackingId: transfer?.trackingId ?? "",
    fileIds: transfer?.files.map((file) => file.id) ?? [],
    options,
    api: (...args: string[]) =>
      runProgram(["api", ...args], {
        cwd: folder,
        env: { ...env, INLET_PASSWORD: PASSWORD },
        input: PASSWORD,
      }),
  };
}
