/** The OpenAPI document describes the API that is served, and the checks of its answers find what is wrong. */
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { API, type ApiRoute } from "../../../src/model/api.ts";
import { checkAnswer, errorsOf, readApi } from "../../support/api.ts";
import { openTestConsole } from "../../support/console.ts";
import { blocksOf } from "../../support/pages.ts";

interface WithContent {
  readonly content: Readonly<Record<string, { readonly schema: { readonly $ref: string } }>>;
}

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly required: boolean }[];
  readonly requestBody?: WithContent;
  readonly responses: Readonly<Record<string, WithContent>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

async function readDocument(): Promise<Document> {
  const { url } = await openTestConsole(0);
  return (await readApi(`${url}api/openapi.json`)) as Document;
}

const ROUTES = Object.entries<ApiRoute>(API);

test("the OpenAPI document is valid", async () => {
  const document = await readDocument();
  expect(document).toMatchObject({ openapi: expect.stringMatching(/^3\.1\./), info: { title: "Inlet" } });
  const { valid, errors } = await new Validator().validate({ ...document });
  expect([valid, errors]).toEqual([true, undefined]);
});

test("the OpenAPI document has every route, with its parameters, its body and its answers, and no other", async () => {
  const { paths } = await readDocument();
  expect(Object.keys(paths)).toEqual(ROUTES.map(([path]) => path));
  for (const [path, { method, query, body, answer }] of ROUTES) {
    expect(Object.keys(paths[path] ?? {})).toEqual([method.toLowerCase()]);
    const operation = paths[path]?.[method.toLowerCase()];
    expect(operation?.parameters.map(({ name }) => name)).toEqual(Object.keys(query.entries));
    const [content] = Object.values(operation?.responses["200"]?.content ?? {});
    expect(content?.schema.$ref).toBe(`#/components/schemas/${answer}`);
    const bodies = Object.values(operation?.requestBody?.content ?? {}).map(({ schema }) => schema.$ref);
    expect(bodies).toEqual(body === undefined ? [] : [`#/components/schemas/${body}`]);
  }
  const ids = Object.values(paths).flatMap((path) => Object.values(path).map((it) => it.operationId));
  expect(new Set(ids).size).toBe(ROUTES.length);
});

test("the OpenAPI document explains parameters, and names those that a request needs", async () => {
  const { paths } = await readDocument();
  const required = paths["/api/transfers/objection"]?.["get"]?.parameters.filter((it) => it.required);
  expect(required?.map(({ name }) => name)).toEqual(["act", "mailbox", "trackingId"]);
  const since = paths["/api/history"]?.["get"]?.parameters.find(({ name }) => name === "since");
  expect(since).toMatchObject({ required: false, description: expect.stringContaining("an age") });
});

describe("the check of answers", () => {
  const answer = { method: "GET", url: "/api/transfers/objection", status: 200, version: "1" };
  const json = { ...answer, type: "application/json; charset=utf-8" };
  const problem = { type: "about:blank", title: "x", status: 404, detail: "x" };
  const refused = { ...json, status: 404, type: "application/problem+json" };

  test("accepts what the document says", () => {
    checkAnswer({ ...json, body: '{"objection":null}' });
    checkAnswer({ ...refused, body: JSON.stringify({ ...problem, code: "NO_SUCH_TRANSFER" }) });
  });

  test.each([
    ["a missing key", { ...json, body: "{}" }],
    ["a key that the document does not name", { ...json, body: '{"objection":null,"more":1}' }],
    ["another type of content", { ...json, type: "text/plain", body: '{"objection":null}' }],
    ["an error without problem details", { ...refused, type: "application/json", body: '{"error":"x"}' }],
    ["a problem with an unknown code", { ...refused, body: JSON.stringify({ ...problem, code: "X" }) }],
  ])("refuses %s", (_what, wrong) => {
    expect(() => checkAnswer(wrong)).toThrow("/api/");
  });
});

test("every example of a request and its answer in docs/operating.md is valid", async () => {
  const { paths } = await readDocument();
  const blocks = blocksOf("docs/operating.md");
  const examples = blocks.flatMap(({ text, language }, at) =>
    language === "json" ? [{ request: blocks[at - 1]?.text ?? "", answer: text }] : [],
  );
  expect(examples).toHaveLength(2);
  for (const { request, answer } of examples) {
    const url = new URL(/http:\S+\/api\/[^\s'"]+/.exec(request)?.[0] ?? "");
    const body = / -d '(.+?)'/s.exec(request)?.[1];
    const method = body === undefined ? "GET" : "POST";
    const type = "application/json";
    checkAnswer({ method, url: url.href, status: 200, type, version: "1", body: answer });
    const operation = paths[url.pathname]?.[method.toLowerCase()];
    const known = operation?.parameters.map(({ name }) => name);
    expect(known).toEqual(expect.arrayContaining([...url.searchParams.keys()]));
    const ref = operation?.requestBody?.content[type]?.schema.$ref;
    if (body !== undefined) expect(errorsOf(ref ?? "", JSON.parse(body))).toBe("");
  }
});
