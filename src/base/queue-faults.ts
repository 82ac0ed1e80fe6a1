/** Faults of the shared queue, a part of `FAULT_CODES`. */
export const QUEUE_FAULTS = {
  QUEUE_UNREACHABLE: {
    verdict: "retry",
    happened: "Redis, which holds the queue, could not be reached",
    advice: "Check queue and the redis settings, and that Redis is running; the daemon keeps trying.",
  },
  QUEUE_REFUSED: {
    verdict: "retry",
    happened: "Redis, which holds the queue, refuses work",
    advice: "Correct the cause in Redis; the daemon then continues by itself.",
  },
  QUEUE_UNSUITABLE: {
    verdict: "fatal",
    happened: "This Redis cannot hold the queue",
    advice: "Use Redis 6.2 or newer, or Valkey, with maxmemory-policy noeviction.",
  },
} as const;
