/** Reads the console's API, and checks each answer against the OpenAPI document. This file needs no test runner. */
import { Ajv2020 } from "ajv/dist/2020.js";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import { describeApi } from "./openapi.ts";

const DOCUMENT = describeApi("1");
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const ajv = new Ajv2020({ allErrors: true, formats: { "date-time": ISO_TIME } });
ajv.addVocabulary(Object.keys(DOCUMENT));
ajv.addSchema(closed(DOCUMENT) as object, "api");

interface Answer {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly type: string | null | undefined;
  /** The header `inlet-api`. */
  readonly version: string | null | undefined;
  readonly body: string;
}

/** The JSON at this address of the API. */
export async function readApi(url: string | URL): Promise<unknown> {
  return jsonOf(await fetch(url));
}

/** The JSON of an answer to `GET`, after the check. */
export async function jsonOf(response: Response): Promise<unknown> {
  const { url, status, headers } = response;
  const body = await response.text();
  const [type, version] = [headers.get("content-type"), headers.get("inlet-api")];
  checkAnswer({ method: "GET", url, status, type, version, body });
  return JSON.parse(body);
}

/** Throws if the answer is not what the document says. Does nothing for other addresses than the API's. */
export function checkAnswer({ method, url, status, type, version, body }: Answer): void {
  const { pathname } = new URL(url, "http://here");
  if (!pathname.startsWith("/api/") || method === "HEAD") return;
  const fail = (why: string): never => {
    throw new Error(`${method} ${pathname}, status ${status}: ${why}\n${body}`);
  };
  if (version !== "1") fail(`its version is ${version}`);
  const [name = ""] = (type ?? "").split(";");
  const { responses } = operationOf(pathname, method) ?? { responses: undefined };
  const content = status === 200 ? responses?.[200].content : PROBLEM_CONTENT;
  const { $ref } = content?.[name]?.schema ?? fail(`the document knows no ${name}`);
  const errors = errorsOf($ref, name === "text/event-stream" ? body : JSON.parse(body));
  if (errors !== "") fail(errors);
  if (name !== PROBLEM) return;
  const problem = JSON.parse(body) as { status: number; code?: string };
  if (problem.status !== status) fail("its body has another status");
  if (problem.code !== undefined && !Object.hasOwn(FAULT_CODES, problem.code)) fail("its code is unknown");
}

/** Why a value does not match a schema of the document; empty if it does. */
export function errorsOf(ref: string, value: unknown): string {
  const validate = ajv.getSchema(`api${ref}`);
  if (validate === undefined) return `there is no ${ref}`;
  return validate(value) ? "" : ajv.errorsText(validate.errors);
}

const PROBLEM = "application/problem+json";
/** Also of requests that reach no route. */
const PROBLEM_CONTENT: Readonly<Record<string, { readonly schema: { readonly $ref: string } }>> = {
  [PROBLEM]: { schema: { $ref: "#/components/schemas/Problem" } },
};

function operationOf(path: string, method: string) {
  return DOCUMENT.paths[path]?.[method.toLowerCase()];
}

/** The same without room for keys that the document does not name: each has to be described. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== "object" || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]));
  const isOpen = copy["type"] === "object" && "properties" in copy && !("additionalProperties" in copy);
  return isOpen ? { ...copy, additionalProperties: false } : copy;
}
