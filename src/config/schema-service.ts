/** The keys that describe a transfer service, whether the common one or a mailbox's own. */
import { DURATION, PATH, type SchemaNode, SECRET, SWITCH, TEXT } from "./schema-nodes.ts";

/** What a client id looks like. */
export const CLIENT_ID_PATTERN = "^[A-Za-z0-9]{50,4000}$";

export const SERVICE_KEYS = {
  baseUrl: {
    ...TEXT,
    title: "the address of a service",
    description:
      "The service's address: what stands before `/api`. It must be https, unless it is on this machine or `allowHttp` is true, and hold no user, password, query or fragment.",
  },
  clientId: {
    ...SECRET,
    title: `50 to 4000 letters and digits, or one of ${SECRET.title.replace(/^.*?one of /, "")}`,
    pattern: CLIENT_ID_PATTERN,
    description:
      "The client id that the service's administrator has registered for the mailboxes. Where absent, one is made, kept in the state folder, and shown so that it can be registered.",
  },
  verification: {
    type: ["string", "object"],
    title: "clientId, or { token: … }",
    pattern: "^clientId$",
    properties: {
      token: {
        ...SECRET,
        description: "A token obtained before, for an address that was verified by a mailed code.",
      },
    },
    required: ["token"],
    additionalProperties: false,
    default: "clientId",
    description:
      "How the mailboxes prove that they own their address: by the registered client id, or by a token obtained before.",
    writeOnly: true,
  },
  acceptLanguage: {
    type: "string",
    title: "one or more languages such as en or de-CH,de;q=0.8",
    pattern: "^[A-Za-z0-9*][A-Za-z0-9*,;=. -]{0,199}$",
    default: "en",
    description: "The language of the service's own texts, such as the titles in its checksums file.",
  },
  fileIdList: {
    type: "string",
    enum: ["repeat", "comma"],
    default: "repeat",
    description:
      "How `inlet api zip --only` and `--except` send several file ids: `repeat` sends the parameter once for each, `comma` sends it once with commas between them. Try the other where the ZIP does not hold the files that were asked for.",
  },
  ca: {
    ...PATH,
    description: "A PEM file with certificate authorities to trust beside the usual ones.",
  },
  cert: { ...PATH, description: "A PEM file with the certificate we show, for mutual TLS. Needs `key`." },
  key: { ...PATH, description: "A PEM file with the private key that belongs to `cert`." },
  proxy: {
    ...TEXT,
    title: "the address of a proxy such as http://proxy.example.com:3128",
    description:
      "The proxy to go through. Where absent, the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` count.",
    writeOnly: true,
  },
  timeout: {
    ...DURATION,
    default: "30s",
    description: "The longest silence of the service that is put up with, at most 24h.",
  },
  allowHttp: {
    ...SWITCH,
    default: false,
    description:
      "Whether plain http may be used to other machines. Secrets then travel unencrypted: for tests only.",
  },
} as const satisfies Record<string, SchemaNode>;
