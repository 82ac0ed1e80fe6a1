import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import type { SecretSource } from "../../../src/base/secret.ts";
import type { Environment } from "../../../src/config/draft.ts";
import { loadService } from "../../../src/config/load.ts";
import type { RedisQueueSettings } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";
import { CA } from "../../support/tls.ts";
import { casesOf, load, NOWHERE, problemsOf, SMALLEST } from "./stage.ts";

const ALLOWED = "embedded, or the address of a Redis such as redis://redis.example.com:6379/0";
const NODES = "a list of at least one host and port such as redis1.example.com:6379";
const NODE = "a host and a port such as redis1.example.com:6379";
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

/** The problems without their positions; fails if one holds a secret. */
async function refusalsOf(text: string, env: Environment = {}): Promise<string[]> {
  const problems = await problemsOf(config(text), env);
  expect(problems.join()).not.toContain("hunter2");
  return problems.map((problem) => problem.replace(/^inlet\.yaml:\d+:\d+: /, ""));
}

async function reveal(source: SecretSource | undefined): Promise<string | undefined> {
  return (await source?.read(SIGNAL))?.reveal();
}

test("a queue on Redis needs only an address", async () => {
  const { url, ...rest } = await queueOf("queue: redis://redis.example.com");
  expect(url.href).toBe("redis://redis.example.com");
  const defaults = { sentinels: [], sentinelName: "mymaster", cluster: [], prefix: "inlet" };
  expect(rest).toEqual({ ...defaults, lockMs: 30_000, role: "all" });
});

test.each([
  ["redis://h/", "redis://h/", undefined, undefined],
  ["rediss://redis_1.example.com/15", "rediss://redis_1.example.com/15", undefined, undefined],
  ["REDISS://h", "rediss://h", undefined, undefined],
  ["redis://[::1]:6379/0", "redis://[::1]:6379/0", undefined, undefined],
  ["redis://anna:hunter2@h:6380/3", "redis://h:6380/3", "anna", "hunter2"],
  ["redis://:hunter2@h", "redis://h", undefined, "hunter2"],
  ["redis://anna@h", "redis://h", "anna", undefined],
  ["redis://a%40b:h%2Fu%25n%C3%A4%3A@h", "redis://h", "a@b", "h/u%nä:"],
  ["redis://anna:hun:ter@2@h", "redis://h", "anna", "hun:ter@2"],
])("a queue on Redis can be at %s", async (queue, href, username, password) => {
  const settings = await queueOf(`queue: "${queue}"`);
  expect(settings.url.href).toBe(href);
  expect([settings.username, await reveal(settings.password)]).toEqual([username, password]);
});

test("a queue on Redis reads the group redis", async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, "ca.pem"), CA);
  await writeFile(join(folder, "password"), "hunter2\n", { mode: 0o600 });
  const plain = {
    username: "anna",
    sentinels: ["s1.example.com:26379", "[::1]:26380"],
    sentinelName: "main",
  };
  const lock = { prefix: "Inlet_2.a-b", lock: "10m" };
  const secret = { password: { file: `${folder}/password` }, sentinelPassword: "hunter3" };
  const keys = { ...plain, ...secret, ...lock, ca: `${folder}/ca.pem` };
  const queue = await queueOf(`queue: rediss:///3\nrole: worker\nredis: ${JSON.stringify(keys)}`);
  const { url, password, sentinelPassword, ...rest } = queue;
  expect(url.href).toBe("rediss:///3");
  expect([await reveal(password), await reveal(sentinelPassword)]).toEqual(["hunter2", "hunter3"]);
  const others = { prefix: lock.prefix, lockMs: 600_000, ca: CA, cluster: [], role: "worker" };
  expect(rest).toEqual({ ...plain, ...others });
});

test.each([
  ["{ username: bert, password: hunter2 }", "bert"],
  ["{ password: hunter2 }", "anna"],
])(
  "a queue on Redis prefers the user and password of redis to those of its address: %s",
  async (redis, user) => {
    const { username, password } = await queueOf(`queue: "redis://anna:x@h"\nredis: ${redis}`);
    expect([username, await reveal(password)]).toEqual([user, "hunter2"]);
  },
);

test("a queue on Redis on a cluster has its prefix in braces, which keeps its keys on one node", async () => {
  for (const queue of ["redis://", "redis://any", "rediss:///0", "redis://anna@any:1/"]) {
    const settings = await queueOf(`queue: ${queue}\nredis: { cluster: ["a:7000", "b:7001"] }`);
    expect(settings).toMatchObject({ cluster: ["a:7000", "b:7001"], sentinels: [], prefix: "{inlet}" });
  }
  const named = await queueOf('queue: redis://\nredis: { cluster: ["a:7000"], prefix: two }');
  expect(named.prefix).toBe("{two}");
});

test("the environment can switch back to the embedded queue", async () => {
  const env = { INLET_QUEUE: "embedded" };
  const { queue, warnings } = await load(config("queue: redis://h\nredis: { lock: 5s }"), env);
  expect([queue, warnings]).toEqual(["embedded", ["redis.lock: not used, because queue is embedded."]]);
});

test("the environment is named in a problem", async () => {
  const env = {
    INLET_QUEUE: "redis://anna:hunter2@h/main",
    INLET_REDIS__SENTINELS: "hunter2:26379",
    INLET_REDIS__CLUSTER: '["hunter2"]',
  };
  expect(await refusalsOf("", env)).toEqual([
    `INLET_REDIS__SENTINELS: redis.sentinels: must be ${NODES}, written as JSON`,
    `INLET_REDIS__CLUSTER: redis.cluster[0]: must be ${NODE}`,
    "INLET_QUEUE: queue: must end with a database such as /3, or have no path",
  ]);
});

const WRONG = `
queue: http://anna:hunter2@h
  queue: must be ${ALLOWED}
queue: hunter2
  queue: must be ${ALLOWED}
queue: localhost:6379
  queue: must be ${ALLOWED}
queue: anna:hunter2@h
  queue: must be ${ALLOWED}: ${ESCAPING}
queue: redis://anna:hunter2/x@h
  queue: must be ${ALLOWED}: ${ESCAPING}
queue: redis://h/main
  queue: must end with a database such as /3, or have no path
queue: redis://anna:1/hunter2@h
  queue: must end with a database such as /3, or have no path: ${ESCAPING}
queue: redis://h/3?password=hunter2
  queue: must not contain ? or #: select a database with a path such as /3
queue: redis://anna:1#hunter2@h
  queue: must not contain ? or #: select a database with a path such as /3: ${ESCAPING}
queue: redis://:hunter2%@h
  queue: contains a % that is not followed by the code of a character: ${ESCAPING}
queue: rediss:///3
  queue: has no host: write one after the //, or set redis.sentinels or redis.cluster
queue: "redis://:hunter2@any/3"
redis: { cluster: ["a:7000"] }
  queue: names database 3, but a cluster has only database 0
queue: 6379
role: worker
redis: { lock: 5s }
  queue: must be ${ALLOWED}
queue:
  queue: has no value: give ${ALLOWED}, or remove the key
role: worker
  role: "worker" needs a queue on Redis: with the embedded one no process would poll for transfers
queue: embedded
role: scheduler
  role: "scheduler" needs a queue on Redis: with the embedded one no process would download transfers
role: boss
  role: "boss" is not one of all, worker, scheduler
`;

/** With a queue on Redis. */
const WRONG_REDIS = `
redis: { sentinels: ['a:1'], sentinelPassword: [hunter2] }
  redis.sentinelPassword: must be text, or one of { file: … }, { env: … }, { credential: … }, { command: [ … ] }
redis: { sentinels: ['a:1', 7] }
  redis.sentinels[1]: must be ${NODE}
redis: { cluster: ['a:1', 'redis://:hunter2@b:2'] }
  redis.cluster[1]: must be ${NODE}
redis: { cluster: ['a:0'] }
  redis.cluster[0]: must be ${NODE}
redis: { cluster: ['a:1', 'a:65536'] }
  redis.cluster[1]: must be ${NODE}
redis: { cluster: ['[:::1]:6379'] }
  redis.cluster[0]: must be ${NODE}
redis: { sentinels: ['a:1'], cluster: ['b:1'] }
  redis.cluster: cannot be used with redis.sentinels: set only one of the two
redis: { prefix: '{a}' }
  redis.prefix: "{a}" is not a name of at most 100 letters, digits, dots, - and _
redis: { lock: 1999ms }
  redis.lock: "1999ms" is not from 2s to 10m
redis: { lock: 11m }
  redis.lock: "11m" is not from 2s to 10m
`;

describe("what is wrong is reported without a password", () => {
  test.each(casesOf(WRONG))("%s", async (text, line) => {
    expect(await refusalsOf(text)).toEqual([line]);
  });

  test.each(casesOf(WRONG_REDIS))("%s", async (text, line) => {
    expect(await refusalsOf(`queue: rediss://h\n${text}`)).toEqual([line]);
  });
});

describe("a warning is given", () => {
  const unused =
    "{ lock: 5s, password: { file: /no/such }, ca: /no/such, sentinels: ['a:1'], cluster: ['b:1'] }";

  test.each([
    ["redis: {}", []],
    ...["", "queue: embedded\n"].map((queue) => [
      `${queue}redis: ${unused}`,
      [
        "redis.password, redis.ca, redis.sentinels, redis.cluster, redis.lock: not used, because queue is embedded.",
      ],
    ]),
    ["queue: rediss://h\nredis: { ca: CA }", []],
    [
      "queue: redis://h\nredis: { ca: CA }",
      ["redis.ca: not used, because queue uses redis:// without TLS, not rediss://."],
    ],
    [
      "queue: redis://h\nredis: { sentinelName: main, sentinelPassword: hunter2 }",
      ["redis.sentinelName, redis.sentinelPassword: not used, because redis.sentinels is not set."],
    ],
  ] as [string, string[]][])("for unused keys: %s", async (text, warnings) => {
    const file = join(await makeFolder(), "ca.pem");
    await writeFile(file, CA);
    expect((await load(config(text.replace("CA", file)))).warnings).toEqual(warnings);
  });
});

test.each([
  'queue: "rediss://:hunter2@h"\nredis: { password: hunter2, sentinels: ["a:1"], sentinelPassword: hunter2 }',
  'queue: "redis://anna:hunter2@h"',
])("passwords do not show in printed settings, whole or in part: %s", async (text) => {
  const settings = await load(config(text));
  const { url, ...rest } = settings.queue as RedisQueueSettings;
  for (const value of [settings, { ...rest }, { url }, rest.password, `${url}`]) {
    const shown = [JSON.stringify(value), inspect(value, { depth: 20, showHidden: true })];
    expect(shown.join()).not.toContain("hunter2");
  }
  expect(await reveal(rest.password)).toBe("hunter2");
});

test.each([
  ['queue: "redis://:hunter2@h"', {}, "the plain text of queue in inlet.yaml"],
  ["", { INLET_QUEUE: "redis://:hunter2@h" }, "the plain text of INLET_QUEUE"],
  ["queue: redis://h\nredis: { password: { env: P } }", { P: "x" }, "variable P"],
])("passwords are described by their source: %s", async (text, env, source) => {
  expect((await queueOf(text, env)).password?.described).toBe(source);
});

test("passwords are not read if only the service is needed", async () => {
  const baseUrl = "https://transfer.example.com";
  const env = { INLET_QUEUE: "nonsense", INLET_REDIS__PASSWORD__FILE: "/no/such" };
  const service = await loadService({ env, baseUrl, defaultPaths: [NOWHERE] });
  expect(service.baseUrl.host).toBe("transfer.example.com");
});
