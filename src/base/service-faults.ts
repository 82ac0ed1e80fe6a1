/** Failures between us and the service, whichever transfer is asked for. */
import type { FaultMeaning } from "./verdict.ts";

export const SERVICE_FAULTS = {
  SERVICE_UNREACHABLE: {
    verdict: "retry",
    happened: "The service could not be reached",
    advice: "Check the base URL, the network, name resolution and the proxy; the daemon retries by itself.",
  },
  SERVICE_TIMEOUT: {
    verdict: "retry",
    happened: "The service did not answer in time",
    advice: "The daemon retries by itself; if it persists, check the network or raise service.timeout.",
  },
  CONNECTION_LOST: {
    verdict: "retry",
    happened: "The connection was lost before the answer was complete",
    advice:
      "The daemon retries by itself; if it persists, look for a proxy or firewall that cuts long downloads.",
  },
  TLS_REFUSED: {
    verdict: "wait",
    happened: "No trusted TLS connection to the service could be established",
    advice:
      "Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
  },
  PROXY_REFUSED: {
    verdict: "wait",
    happened: "The proxy refused the connection",
    advice: "Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's rules.",
  },
  REDIRECT_REFUSED: {
    verdict: "wait",
    happened: "The service redirected to another origin, and Inlet sends secrets only to the configured one",
    advice:
      "If the service has moved, set service.baseUrl to its new address; otherwise ask its administrator.",
  },
  RATE_LIMITED: {
    verdict: "wait",
    happened: "The service limits the rate of requests",
    advice: "The daemon waits as long as the service asks; if it persists, poll less often.",
  },
  SERVER_FAULT: {
    verdict: "retry",
    happened: "The service failed",
    advice: "The daemon retries by itself; if it persists, contact the service's administrator.",
  },
  NOT_SUPPORTED: {
    verdict: "fatal",
    happened: "The service does not support this operation",
    advice: "Ask the service's administrator whether it is disabled, or the service too old.",
  },
  BAD_ANSWER: {
    verdict: "retry",
    happened: "The answer does not follow the interface",
    advice:
      "A proxy or login page may have answered; check that service.baseUrl leads to the service itself.",
  },
  ANSWER_TOO_LARGE: {
    verdict: "retry",
    happened: "The answer is implausibly large",
    advice:
      "Check that service.baseUrl leads to the service itself, and contact the service's administrator.",
  },
  POLL_TOO_LONG: {
    verdict: "retry",
    happened: "The poll took too long",
    advice:
      "Inlet downloads the transfers listed so far and polls again. Ask the service's administrator why its lists are slow.",
  },
  LIST_ENDLESS: {
    verdict: "retry",
    happened: "The list of transfers does not end",
    advice: "Contact the service's administrator.",
  },
  TOO_MANY_TRANSFERS: {
    verdict: "retry",
    happened: "The service lists more new transfers than Inlet takes up at once",
    advice:
      "If you expect that many, do nothing: later polls take up the rest. Otherwise contact the service's administrator.",
  },
  BAD_REQUEST: {
    verdict: "fatal",
    happened: "The service did not understand the request",
    advice: "Check the ids and options; if they are right, please report this as a defect of Inlet.",
  },
  TOKEN_REFUSED: {
    verdict: "wait",
    happened: "The service does not accept the verification of this address",
    advice:
      "Ask the service's administrator to register the client id for it, or verify it with inlet verify-address.",
  },
  NOT_LICENSED: {
    verdict: "wait",
    happened: "The service's REST interface is not licensed",
    advice: "Ask the service's administrator to enable it.",
  },
  POLICY_REFUSED: {
    verdict: "wait",
    happened: "The service's policy refuses the request",
    advice: "Ask the service's administrator which rule applies to this address.",
  },
  ACCESS_REFUSED: {
    verdict: "wait",
    happened: "The service, or a proxy in front of it, refused access",
    advice: "Check the base URL and the proxy, and ask the service's administrator.",
  },
  API_VERSION: {
    verdict: "fatal",
    happened: "The service does not offer the interface version that Inlet needs",
    advice: "Inlet needs 1.12 or a newer 1.x: ask the service's administrator for an update.",
  },
  NO_SUCH_ENDPOINT: {
    verdict: "fatal",
    happened: "The service does not have this endpoint",
    advice:
      "Check service.baseUrl, the part of the address before /api. An older service may lack this operation.",
  },
} as const satisfies Record<string, FaultMeaning>;
