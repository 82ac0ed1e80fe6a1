/** The OpenAPI document, from the table of routes and its shapes. */
import {
  type ConversionConfig,
  type JsonSchema,
  toJsonSchema,
  toJsonSchemaDefs,
} from "@valibot/to-json-schema";
import { API, API_SHAPES, API_VERSION, type ApiRoute } from "../../src/model/api.ts";

/** JSON cannot express checks, trimmed text and read-only lists. */
const CONVERSION: ConversionConfig = { typeMode: "input", target: "draft-2020-12", errorMode: "ignore" };

const DESCRIPTION = `The state of an Inlet daemon, its transfers and their history, and the actions of operators. Version ${API_VERSION} of the API: every answer names it in the header inlet-api. Within one version, routes, parameters and keys are only added. Programs should ignore keys that they do not know.`;

/** `program`: its version. */
export function describeApi(program: string) {
  return {
    openapi: "3.1.1",
    info: { title: "Inlet", version: program, description: DESCRIPTION },
    servers: [{ url: "/" }],
    paths: Object.fromEntries(
      Object.entries<ApiRoute>(API).map(([path, route]) => [
        path,
        { [route.method.toLowerCase()]: describeRoute(path, route) },
      ]),
    ),
    components: {
      schemas: toJsonSchemaDefs(API_SHAPES, {
        ...CONVERSION,
        overrideRef: ({ referenceId }) => refTo(referenceId),
      }),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
  };
}

function describeRoute(path: string, { role, summary, query, body, answer, type }: ApiRoute) {
  const { properties, required = [] } = toJsonSchema(query, CONVERSION);
  return {
    operationId: path.replace(/^\/api\/|\.json$/g, "").replaceAll("/", "-"),
    summary,
    description: `Role: ${role}.`,
    // Reading may be open, and so is a Unix socket without tokens.
    security: [{}, { token: [] }],
    parameters: Object.entries(properties as Readonly<Record<string, JsonSchema>>).map(
      ([name, { description, ...schema }]) => ({
        name,
        in: "query",
        required: required.includes(name),
        description,
        schema,
      }),
    ),
    ...(body === undefined ? {} : { requestBody: { required: true, content: contentOf(body) } }),
    responses: {
      200: { description: "The answer.", content: contentOf(answer, type) },
      default: {
        description: "A problem (RFC 9457).",
        content: contentOf("Problem", "application/problem+json"),
      },
    },
  };
}

function contentOf(shape: string, type = "application/json") {
  return { [type]: { schema: { $ref: refTo(shape) } } };
}

function refTo(shape: string): string {
  return `#/components/schemas/${shape}`;
}
