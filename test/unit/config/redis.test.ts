import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import type { SecretSource } from "../../../src/base/secret.ts";
import type { Environment } from "../../../src/config/draft.ts";
import { loadService, loadSettings } from "../../../src/config/load.ts";
import type { RedisQueueSettings } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";
import { CA } from "../../support/tls.ts";
import { load, NOWHERE, problemsOf, SMALLEST, writeConfig } from "./stage.ts";

const ALLOWED = "embedded, or the address of a Redis such as redis://redis.example.com:6379/0";
const NODES = "a list of at least one host and port such as redis1.example.com:6379";
const NODE = "a host and a port such as redis1.example.com:6379";
const SECRET_FORMS = "text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }";
const ESCAPING =
  "put a password with special characters into redis.password, or escape each of them with % and two digits, such as %2F";

/** The given text starts on the fifth line. */
function config(text: string): string {
  return `${SMALLEST}${text}\n`;
}

async function queueOf(text: string, env: Environment = {}): Promise<RedisQueueSettings> {
  const { queue, warnings } = await load(config(text), env);
  expect(warnings).toEqual([]);
  if (queue === "embedded") throw new Error("the queue is embedded");
  return queue;
}

async function warningsOf(text: string): Promise<readonly string[]> {
  return (await load(config(text))).warnings;
}

/** The problems without their positions; fails if one holds a secret. */
async function refusalsOf(text: string, env: Environment = {}): Promise<string[]> {
  const problems = await problemsOf(config(text), env);
  expect(problems.join()).not.toContain("hunter2");
  return problems.map((problem) => problem.replace(/^inlet\.yaml:\d+:\d+: /, ""));
}

async function reveal(source: SecretSource | undefined): Promise<string | undefined> {
  return (await source?.read(SIGNAL))?.reveal();
}

describe("a queue on Redis", () => {
  test("needs only an address", async () => {
    const { url, ...rest } = await queueOf("queue: redis://redis.example.com");
    expect(url.href).toBe("redis://redis.example.com");
    expect(rest).toEqual({
      username: undefined,
      password: undefined,
      ca: undefined,
      sentinels: [],
      sentinelName: "mymaster",
      sentinelPassword: undefined,
      cluster: [],
      prefix: "inlet",
      lockMs: 30_000,
      role: "all",
    });
  });

  test.each([
    ["redis://h", "redis://h"],
    ["redis://h/", "redis://h/"],
    ["redis://h:6380/3", "redis://h:6380/3"],
    ["rediss://redis_1.example.com/15", "rediss://redis_1.example.com/15"],
    ["REDISS://h", "rediss://h"],
    ["redis://[::1]:6379/0", "redis://[::1]:6379/0"],
    ["redis://10.0.0.1:65535", "redis://10.0.0.1:65535"],
    ["redis://u:hunter2@h:6380/3", "redis://h:6380/3"],
  ])("can be at %s", async (queue, href) => {
    expect((await queueOf(`queue: "${queue}"`)).url.href).toBe(href);
  });

  test.each([
    ["redis://anna:hunter2@h", "anna", "hunter2"],
    ["redis://:hunter2@h", undefined, "hunter2"],
    ["redis://anna@h", "anna", undefined],
    ["redis://anna:@h", "anna", undefined],
    ["redis://a%40b:h%2Fu%25n%C3%A4%3A@h", "a@b", "h/u%nä:"],
    ["redis://anna:hun:ter@2@h", "anna", "hun:ter@2"],
  ])("reads user and password from its address: %s", async (queue, username, password) => {
    const settings = await queueOf(`queue: "${queue}"`);
    expect([settings.username, await reveal(settings.password)]).toEqual([username, password]);
    expect(settings.url.href).toBe("redis://h");
  });

  test("reads the group redis", async () => {
    const folder = await makeFolder();
    await writeFile(join(folder, "ca.pem"), CA);
    await writeFile(join(folder, "password"), "hunter2\n", { mode: 0o600 });
    const settings = await queueOf(`
queue: rediss:///3
role: worker
redis:
  username: anna
  password: { file: ${folder}/password }
  ca: ${folder}/ca.pem
  sentinels: ["s1.example.com:26379", "[::1]:26380"]
  sentinelName: main
  sentinelPassword: hunter3
  prefix: Inlet_2.a-b
  lock: 2s`);
    const { url, password, sentinelPassword, ...rest } = settings;
    expect(url.href).toBe("rediss:///3");
    expect([await reveal(password), await reveal(sentinelPassword)]).toEqual(["hunter2", "hunter3"]);
    expect(rest).toEqual({
      username: "anna",
      ca: CA,
      sentinels: ["s1.example.com:26379", "[::1]:26380"],
      sentinelName: "main",
      cluster: [],
      prefix: "Inlet_2.a-b",
      lockMs: 2_000,
      role: "worker",
    });
  });

  test("resolves ca from the folder of the file", async () => {
    const path = await writeConfig(config("queue: rediss://h\nredis: { ca: ca.pem }"));
    await writeFile(join(path, "../ca.pem"), CA);
    const { queue } = await loadSettings({ path, env: {} });
    expect(queue).toMatchObject({ ca: CA });
  });

  test("prefers the user and password of redis to those of its address", async () => {
    const { username, password } = await queueOf(
      'queue: "redis://anna:x@h"\nredis: { username: bert, password: hunter2 }',
    );
    expect([username, await reveal(password)]).toEqual(["bert", "hunter2"]);
    const half = await queueOf('queue: "redis://anna:x@h"\nredis: { password: hunter2 }');
    expect([half.username, await reveal(half.password)]).toEqual(["anna", "hunter2"]);
  });

  test("on a cluster has its prefix in braces, which keeps its keys on one node", async () => {
    for (const queue of ["redis://", "redis://any", "rediss:///0", "redis://anna@any:1/"]) {
      const settings = await queueOf(`queue: ${queue}\nredis: { cluster: ["a:7000", "b:7001"] }`);
      expect(settings).toMatchObject({ cluster: ["a:7000", "b:7001"], sentinels: [], prefix: "{inlet}" });
    }
    const named = await queueOf('queue: redis://\nredis: { cluster: ["a:7000"], prefix: two }');
    expect(named.prefix).toBe("{two}");
  });

  test.each(["all", "worker", "scheduler"])("can have a process with the role %s", async (role) => {
    expect((await queueOf(`queue: redis://h\nrole: ${role}`)).role).toBe(role);
  });

  test.each([
    ["2s", 2_000],
    ["2500ms", 2_500],
    ["10m", 600_000],
  ])("can have a lock of %s", async (lock, lockMs) => {
    expect((await queueOf(`queue: redis://h\nredis: { lock: ${lock} }`)).lockMs).toBe(lockMs);
  });
});

describe("the environment", () => {
  const FULL = {
    INLET_QUEUE: "rediss://anna:x@h/1",
    INLET_ROLE: "scheduler",
    INLET_REDIS__USERNAME: "bert",
    INLET_REDIS__PASSWORD: "hunter2",
    INLET_REDIS__SENTINELS: '["s1:26379","s2:26379"]',
    INLET_REDIS__SENTINELNAME: "main",
    INLET_REDIS__SENTINELPASSWORD__ENV: "THEIRS",
    INLET_REDIS__PREFIX: "two",
    INLET_REDIS__LOCK: "1m",
    THEIRS: "hunter3",
  };

  test("can set every key instead of the file", async () => {
    const folder = await makeFolder();
    await writeFile(join(folder, "ca.pem"), CA);
    const path = await writeConfig(config("queue: redis://file\nredis: { prefix: file, lock: 5s }"));
    const env = { ...FULL, INLET_REDIS__CA: "ca.pem" };
    const { queue, warnings } = await loadSettings({ path, env, cwd: folder });
    const { url, password, sentinelPassword, ...rest } = queue as RedisQueueSettings;
    expect([url.href, warnings]).toEqual(["rediss://h/1", []]);
    expect([await reveal(password), await reveal(sentinelPassword)]).toEqual(["hunter2", "hunter3"]);
    expect(rest).toEqual({
      username: "bert",
      ca: CA,
      sentinels: ["s1:26379", "s2:26379"],
      sentinelName: "main",
      cluster: [],
      prefix: "two",
      lockMs: 60_000,
      role: "scheduler",
    });
  });

  test("can set the whole group, or a cluster, as JSON", async () => {
    const group = { INLET_QUEUE: "redis://", INLET_REDIS: '{"cluster":["a:1"],"lock":"3s"}' };
    expect(await queueOf("", group)).toMatchObject({ cluster: ["a:1"], lockMs: 3_000 });
    const list = { INLET_QUEUE: "redis://", INLET_REDIS__CLUSTER: '["a:1","b:2"]' };
    expect(await queueOf("", list)).toMatchObject({ cluster: ["a:1", "b:2"], prefix: "{inlet}" });
  });

  test("can switch back to the embedded queue", async () => {
    const { queue, warnings } = await load(config("queue: redis://h\nredis: { lock: 5s }"), {
      INLET_QUEUE: "embedded",
    });
    expect([queue, warnings]).toEqual(["embedded", ["redis.lock: not used, because queue is embedded."]]);
  });

  test("is named in a problem", async () => {
    const env = {
      INLET_QUEUE: "redis://anna:hunter2@h/main",
      INLET_ROLE: "boss",
      INLET_REDIS__SENTINELS: "hunter2:26379",
      INLET_REDIS__CLUSTER: '["hunter2"]',
      INLET_REDIS__LOCK: "1s",
    };
    expect(await refusalsOf("", env)).toEqual([
      `INLET_REDIS__SENTINELS: redis.sentinels: must be ${NODES}, written as JSON`,
      `INLET_REDIS__CLUSTER: redis.cluster[0]: must be ${NODE}`,
      'INLET_ROLE: role: "boss" is not one of all, worker, scheduler',
      'INLET_QUEUE: queue: "redis://[secret]@h/main" must end with a database such as /3, or have no path',
      'INLET_REDIS__LOCK: redis.lock: "1s" is not from 2s to 10m',
    ]);
  });
});

describe("a wrong queue is reported without its password", () => {
  test.each([
    ["http://h:6379", `queue: "http://h:6379" is not ${ALLOWED}`],
    ["http://anna:hunter2@h", `queue: "http://[secret]@h" is not ${ALLOWED}`],
    ["redis+tls://:hunter2@h/0", `queue: "redis+tls://[secret]@h/0" is not ${ALLOWED}`],
    ["redis://h:0", `queue: "redis://h:0" is not ${ALLOWED}`],
    ["redis://hö", `queue: "redis://hö" is not ${ALLOWED}`],
    // No part of it can be recognised.
    ["hunter2", `queue: must be ${ALLOWED}`],
    ["Embedded", `queue: must be ${ALLOWED}`],
    ["localhost:6379", `queue: must be ${ALLOWED}`],
    ["redis:hunter2", `queue: must be ${ALLOWED}`],
    ["redis://h:99999", `queue: must be ${ALLOWED}`],
    ["redis://anna:hunter2", `queue: must be ${ALLOWED}`],
    ["anna:hunter2@h", `queue: must be ${ALLOWED}: ${ESCAPING}`],
    ["redis://anna:hunter2@", `queue: must be ${ALLOWED}: ${ESCAPING}`],
    ["redis://anna:hunter2/x@h", `queue: must be ${ALLOWED}: ${ESCAPING}`],
    // Its path, query and fragment.
    ["redis://h/main", 'queue: "redis://h/main" must end with a database such as /3, or have no path'],
    ["redis://h/1/", 'queue: "redis://h/1/" must end with a database such as /3, or have no path'],
    ["redis://h/-1", 'queue: "redis://h/-1" must end with a database such as /3, or have no path'],
    [
      "redis://:hunter2@h/03",
      'queue: "redis://[secret]@h/03" must end with a database such as /3, or have no path',
    ],
    ["redis://anna:1/hunter2@h", `queue: must end with a database such as /3, or have no path: ${ESCAPING}`],
    ["redis://h?db=3", "queue: must not contain ? or #: select a database with a path such as /3"],
    [
      "redis://h/3?password=hunter2",
      "queue: must not contain ? or #: select a database with a path such as /3",
    ],
    ["redis://h/#hunter2", "queue: must not contain ? or #: select a database with a path such as /3"],
    [
      "redis://anna:1#hunter2@h",
      `queue: must not contain ? or #: select a database with a path such as /3: ${ESCAPING}`,
    ],
    [
      "redis://:hunter2%@h",
      `queue: contains a % that is not followed by the code of a character: ${ESCAPING}`,
    ],
    [
      "redis://:hunter2%FF@h",
      `queue: contains a % that is not followed by the code of a character: ${ESCAPING}`,
    ],
    [
      "redis://hunter2%zz@h",
      `queue: contains a % that is not followed by the code of a character: ${ESCAPING}`,
    ],
    // Its host.
    [
      "redis://",
      'queue: "redis://" has no host: write one after the //, or set redis.sentinels or redis.cluster',
    ],
    [
      "rediss:///3",
      'queue: "rediss:///3" has no host: write one after the //, or set redis.sentinels or redis.cluster',
    ],
  ])("%s", async (queue, line) => {
    expect(await refusalsOf(`queue: "${queue}"`)).toEqual([line]);
  });

  test("with its position in the file", async () => {
    expect(await problemsOf(config("queue: ftp://h"))).toEqual([
      `inlet.yaml:5:1: queue: "ftp://h" is not ${ALLOWED}`,
    ]);
  });

  test("if it is not text, without guesses about the rest", async () => {
    expect(await refusalsOf("queue: 6379\nrole: worker\nredis: { lock: 5s }")).toEqual([
      `queue: must be ${ALLOWED}`,
    ]);
    expect(await refusalsOf("queue:")).toEqual([`queue: has no value: give ${ALLOWED}, or remove the key`]);
  });

  test("together with other problems", async () => {
    const text = 'queue: ftp://h\nredis: { lock: 1s, sentinels: ["a:1"], cluster: ["b:1"] }';
    expect(await refusalsOf(text)).toEqual([
      `queue: "ftp://h" is not ${ALLOWED}`,
      'redis.lock: "1s" is not from 2s to 10m',
      "redis.cluster: cannot be used with redis.sentinels: set only one of the two",
    ]);
  });

  test("if a cluster has no such database", async () => {
    expect(await refusalsOf('queue: "redis://:hunter2@any/3"\nredis: { cluster: ["a:7000"] }')).toEqual([
      'queue: "redis://[secret]@any/3" names database 3, but a cluster has only database 0',
    ]);
    expect(await refusalsOf('queue: "redis://:hunter2@x@any/3"\nredis: { cluster: ["a:7000"] }')).toEqual([
      'queue: "redis://any/3" names database 3, but a cluster has only database 0',
    ]);
  });
});

describe("wrong keys of redis are reported", () => {
  test.each([
    ["{ userName: anna }", "redis.userName: unknown key, did you mean username?"],
    ["redis://h", "redis: must be a group of keys"],
    ["{ username: 7 }", "redis.username: 7 is not text: put it in quotes"],
    ['{ username: "" }', "redis.username: must be text"],
    ["{ password: 7 }", `redis.password: must be ${SECRET_FORMS}: put it in quotes`],
    ["{ password: { flie: hunter2 } }", "redis.password: has an unknown key, did you mean file?"],
    ["{ password: { env: NOPE } }", "redis.password.env: variable NOPE is not set"],
    [
      "{ sentinels: ['a:1'], sentinelPassword: { file: /no/such } }",
      "redis.sentinelPassword.file: file /no/such does not exist",
    ],
    [
      "{ sentinels: ['a:1'], sentinelPassword: [hunter2] }",
      `redis.sentinelPassword: must be ${SECRET_FORMS}`,
    ],
    [
      "{ ca: ~/ca.pem }",
      'redis.ca: "~/ca.pem" is not a path: ~ is not expanded, write the whole path from / on',
    ],
    ["{ ca: /no/such }", "redis.ca: /no/such cannot be read (ENOENT)"],
    ["{ ca: /etc/hosts }", "redis.ca: /etc/hosts is not a PEM file: it has no line -----BEGIN …-----"],
    ["{ sentinels: [] }", `redis.sentinels: must be ${NODES}`],
    ["{ sentinels: 'a:1' }", `redis.sentinels: must be ${NODES}`],
    ["{ sentinels: [a] }", `redis.sentinels[0]: must be ${NODE}`],
    ["{ sentinels: ['a:1', 7] }", `redis.sentinels[1]: must be ${NODE}`],
    ["{ sentinels: ['a:1'], sentinelName: '' }", "redis.sentinelName: must be text"],
    ["{ cluster: [] }", `redis.cluster: must be ${NODES}`],
    ["{ cluster: ['a:1', 'redis://:hunter2@b:2'] }", `redis.cluster[1]: must be ${NODE}`],
    ["{ cluster: [':hunter2@b:2'] }", `redis.cluster[0]: must be ${NODE}`],
    ["{ cluster: ['a:0'] }", `redis.cluster[0]: must be ${NODE}`],
    ["{ cluster: ['a:1', 'a:65536'] }", `redis.cluster[1]: must be ${NODE}`],
    ["{ cluster: ['[:::1]:6379'] }", `redis.cluster[0]: must be ${NODE}`],
    ["{ cluster: ['::1:6379'] }", `redis.cluster[0]: must be ${NODE}`],
    [
      "{ sentinels: ['a:1'], cluster: ['b:1'] }",
      "redis.cluster: cannot be used with redis.sentinels: set only one of the two",
    ],
    ["{ prefix: '' }", "redis.prefix: must be a name of at most 100 letters, digits, dots, - and _"],
    ["{ prefix: '{a}' }", 'redis.prefix: "{a}" is not a name of at most 100 letters, digits, dots, - and _'],
    ["{ prefix: 'a:b' }", 'redis.prefix: "a:b" is not a name of at most 100 letters, digits, dots, - and _'],
    ["{ lock: soon }", 'redis.lock: "soon" is not a duration such as 250ms, 30s, 5m or 1h'],
    ["{ lock: 1999ms }", 'redis.lock: "1999ms" is not from 2s to 10m'],
    ["{ lock: 11m }", 'redis.lock: "11m" is not from 2s to 10m'],
    ["{ lock: 25h }", 'redis.lock: "25h" is not from 2s to 10m'],
  ])("%s", async (redis, line) => {
    expect(await refusalsOf(`queue: rediss://h\nredis: ${redis}`)).toEqual([line]);
  });

  test("a prefix of 100 letters is the longest", async () => {
    const text = (length: number) => `queue: redis://h\nredis: { prefix: ${"p".repeat(length)} }`;
    expect((await queueOf(text(100))).prefix).toHaveLength(100);
    expect(await refusalsOf(text(101))).toEqual([
      `redis.prefix: "${"p".repeat(79)}… is not a name of at most 100 letters, digits, dots, - and _`,
    ]);
  });
});

describe("a role", () => {
  test.each([
    [
      "worker",
      'role: "worker" needs a queue on Redis: with the embedded one no process would poll for transfers',
    ],
    [
      "scheduler",
      'role: "scheduler" needs a queue on Redis: with the embedded one no process would download transfers',
    ],
    ["boss", 'role: "boss" is not one of all, worker, scheduler'],
  ])("that leaves work undone is refused: %s", async (role, line) => {
    expect(await refusalsOf(`role: ${role}`)).toEqual([line]);
    expect(await refusalsOf(`queue: embedded\nrole: ${role}`)).toEqual([line]);
  });

  test("is all by default", async () => {
    expect(await load(config("role: all"))).toMatchObject({ queue: "embedded", warnings: [] });
  });
});

describe("a warning is given", () => {
  test("for keys of redis that the embedded queue does not use", async () => {
    const redis =
      "{ lock: 5s, password: { file: /no/such }, ca: /no/such, sentinels: ['a:1'], cluster: ['b:1'] }";
    for (const queue of ["", "queue: embedded\n"]) {
      expect(await warningsOf(`${queue}redis: ${redis}`)).toEqual([
        "redis.password, redis.ca, redis.sentinels, redis.cluster, redis.lock: not used, because queue is embedded.",
      ]);
    }
    expect(await warningsOf("redis: {}")).toEqual([]);
  });

  test("for ca without TLS", async () => {
    const file = join(await makeFolder(), "ca.pem");
    await writeFile(file, CA);
    expect(await warningsOf(`queue: rediss://h\nredis: { ca: ${file} }`)).toEqual([]);
    expect(await warningsOf(`queue: redis://h\nredis: { ca: ${file} }`)).toEqual([
      "redis.ca: not used, because queue uses redis:// without TLS, not rediss://.",
    ]);
  });

  test("for sentinel keys without sentinels", async () => {
    const redis = "{ sentinelName: main, sentinelPassword: hunter2 }";
    expect(await warningsOf(`queue: redis://h\nredis: ${redis}`)).toEqual([
      "redis.sentinelName, redis.sentinelPassword: not used, because redis.sentinels is not set.",
    ]);
  });

  test("for a password in a file that others can read, even in the address", async () => {
    const redis = "redis: { sentinels: ['a:1'], password: hunter2, sentinelPassword: hunter2 }";
    const path = await writeConfig(config(`queue: "redis://:hunter2@h"\n${redis}`));
    await chmod(path, 0o644);
    const { warnings } = await loadSettings({ path, env: {} });
    expect(warnings).toEqual([
      `A secret is in plain text (queue, redis.password, redis.sentinelPassword), and ${path} can be read or changed by every user of this machine: restrict it to its owner (chmod go= ${path}).`,
    ]);
  });

  test("not for a password in the environment, nor for an address without one", async () => {
    const path = await writeConfig(config('queue: "redis://anna@h"'));
    await chmod(path, 0o644);
    for (const env of [{}, { INLET_QUEUE: "redis://:hunter2@h", INLET_REDIS__PASSWORD: "hunter2" }]) {
      expect((await loadSettings({ path, env })).warnings).toEqual([]);
    }
  });
});

describe("passwords", () => {
  const text = config(
    'queue: "rediss://:hunter2@h"\nredis: { sentinels: ["a:1"], password: hunter2, sentinelPassword: hunter2 }',
  );

  test("do not show in printed settings, whole or in part", async () => {
    for (const settings of [await load(text), await load(config('queue: "redis://anna:hunter2@h"'))]) {
      const { url, ...rest } = settings.queue as RedisQueueSettings;
      for (const value of [settings, { ...rest }, { url }, rest.password]) {
        const shown = [JSON.stringify(value), inspect(value, { depth: 20, showHidden: true })];
        expect(shown.join()).not.toContain("hunter2");
      }
      expect(`${url}`).not.toContain("hunter2");
      expect(await reveal(rest.password)).toBe("hunter2");
    }
  });

  test("are described by their source", async () => {
    const described = async (given: string, env: Environment = {}) =>
      (await queueOf(given, env)).password?.described;
    expect(await described('queue: "redis://:hunter2@h"')).toBe("the plain text of queue in inlet.yaml");
    expect(await described("", { INLET_QUEUE: "redis://:hunter2@h" })).toBe("the plain text of INLET_QUEUE");
    expect(await described("queue: redis://h\nredis: { password: { env: P } }", { P: "x" })).toBe(
      "variable P",
    );
  });

  test("are not read if only the service is needed", async () => {
    const env = {
      INLET_SERVICE__BASEURL: "https://transfer.example.com",
      INLET_QUEUE: "nonsense",
      INLET_REDIS__PASSWORD__FILE: "/no/such",
    };
    expect((await loadService({ env, defaultPaths: [NOWHERE] })).baseUrl.host).toBe("transfer.example.com");
  });
});
