/** Failures between us and the service, whichever transfer is asked for. */
import type { FaultMeaning } from "./verdict.ts";

export const SERVICE_FAULTS = {
  SERVICE_UNREACHABLE: {
    verdict: "retry",
    happened: "The service could not be reached",
    advice:
      "Check the base URL, the network, name resolution and the proxy; the daemon tries again by itself.",
  },
  SERVICE_TIMEOUT: {
    verdict: "retry",
    happened: "The service did not answer in time",
    advice: "The daemon tries again by itself; if it persists, look at the network or raise service.timeout.",
  },
  CONNECTION_LOST: {
    verdict: "retry",
    happened: "The connection broke before the answer was complete",
    advice:
      "The daemon tries again by itself; if it persists, look for a proxy or firewall that cuts long transfers.",
  },
  TLS_REFUSED: {
    verdict: "wait",
    happened: "No trusted connection to the service could be made",
    advice:
      "Check the base URL and the service's certificate; for a private certificate authority set service.ca.",
  },
  PROXY_REFUSED: {
    verdict: "wait",
    happened: "The proxy refused the connection",
    advice: "Check service.proxy (or HTTPS_PROXY and NO_PROXY) and the proxy's own rules.",
  },
  REDIRECT_REFUSED: {
    verdict: "wait",
    happened: "The service sent the request elsewhere, and secrets go only to the configured origin",
    advice: "If the service has moved, set service.baseUrl to its new address; otherwise ask who runs it.",
  },
  RATE_LIMITED: {
    verdict: "wait",
    happened: "The service asks for fewer requests",
    advice: "Wait for the time the service names, as the daemon does; poll less often if it persists.",
  },
  SERVER_FAULT: {
    verdict: "retry",
    happened: "The service failed",
    advice: "The daemon tries again by itself; if it persists, tell whoever runs the service.",
  },
  NOT_SUPPORTED: {
    verdict: "fatal",
    happened: "The service does not support this operation",
    advice: "Ask whoever runs the service whether it is switched off or too old.",
  },
  BAD_ANSWER: {
    verdict: "retry",
    happened: "The answer is not what the interface promises",
    advice:
      "A proxy or login page may stand in between; check that service.baseUrl leads to the service itself.",
  },
  ANSWER_TOO_LARGE: {
    verdict: "retry",
    happened: "The answer is larger than any honest one",
    advice: "Check that service.baseUrl leads to the service itself, and tell whoever runs it.",
  },
  POLL_TOO_LONG: {
    verdict: "retry",
    happened: "The poll took too long",
    advice:
      "Inlet downloads the transfers that were listed so far and polls again. Ask the service's operator why its lists are slow.",
  },
  LIST_ENDLESS: {
    verdict: "retry",
    happened: "The list of transfers does not end",
    advice: "Tell whoever runs the service.",
  },
  TOO_MANY_TRANSFERS: {
    verdict: "retry",
    happened: "The service lists more new transfers than Inlet takes up at once",
    advice:
      "If so many are expected, do nothing: later polls take up the rest. Otherwise tell the service's operator.",
  },
  BAD_REQUEST: {
    verdict: "fatal",
    happened: "The service did not understand the request",
    advice: "Check the ids and options given; if they are right, please report this as a defect of Inlet.",
  },
  TOKEN_REFUSED: {
    verdict: "wait",
    happened: "The service does not accept the verification of this address",
    advice:
      "Ask the service's administrator to register the client id for it, or verify it by a mailed code.",
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
    happened: "The service or a proxy before it refused access",
    advice: "Check the base URL and the proxy, and ask whoever runs the service.",
  },
  API_VERSION: {
    verdict: "fatal",
    happened: "The service does not speak the version of the interface that Inlet needs",
    advice: "Inlet needs version 1.12 or newer of major version 1: ask for an update of the service.",
  },
  NO_SUCH_ENDPOINT: {
    verdict: "fatal",
    happened: "The service has nothing at this address",
    advice: "Check service.baseUrl: it is what stands before /api. An older service may lack this operation.",
  },
} as const satisfies Record<string, FaultMeaning>;
