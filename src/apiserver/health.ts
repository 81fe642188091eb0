// Serves /healthz, /livez and /readyz, which report the liveness and readiness of the process. `?verbose` lists the checks
// by name, and `?exclude=` skips a check. Clients without credentials can read the reports, so a check can withhold details.
import { type ApiResponse, textResponse } from './http/messages.ts'

export interface Health {
  /** Registers a readiness check that fails until `ok` is called. */
  addReadiness(name: string): { ok(): void; fail(reason: string): void }
  /** Registers a check. It is a readiness check by default. */
  addCheck(name: string, check: Check, options?: { readonly isReadiness: boolean }): void
  handle(path: string, query: URLSearchParams, reader?: HealthReader): Promise<ApiResponse | undefined>
}

/** The client that a report is for. */
export interface HealthReader {
  readonly isAuthenticated: boolean
}

/** Returns the problem, if there is one, with the details that the reader may see. */
type Check = (reader: HealthReader) => Promise<string | undefined>

const ANONYMOUS_READER: HealthReader = { isAuthenticated: false }

export function createHealth(): Health {
  const checks = new Map<string, Check>([['ping', async () => undefined]])
  /** Checks that only /healthz reports. */
  const nonReadiness = new Set<string>()

  const report = async (names: readonly string[], title: string, { query, reader }: Report): Promise<ApiResponse> => {
    const excludedNames = new Set(query.getAll('exclude'))
    let hasFailed = false
    const reportLine = async (name: string) => {
      if (excludedNames.has(name)) return `[+]${name} excluded: ok`
      const problem = await checks.get(name)?.(reader)
      if (problem === undefined) return `[+]${name} ok`
      hasFailed = true
      return `[-]${name} failed: ${problem}`
    }
    const lines = await Promise.all(names.map(reportLine))
    if (hasFailed) return textResponse(503, `${lines.join('\n')}\n${title} check failed\n`)
    return textResponse(200, query.has('verbose') ? `${lines.join('\n')}\n${title} check passed\n` : 'ok')
  }

  return {
    addReadiness(name) {
      let problem: string | undefined = 'not done yet'
      checks.set(name, async () => problem)
      return {
        ok() {
          problem = undefined
        },
        fail(reason) {
          problem = reason
        },
      }
    },
    addCheck(name, check, { isReadiness } = { isReadiness: true }) {
      checks.set(name, check)
      if (!isReadiness) nonReadiness.add(name)
    },
    async handle(path, query, reader = ANONYMOUS_READER) {
      const match = /^\/(healthz|livez|readyz)(?:\/([^/]+))?\/?$/.exec(path)
      if (!match) return undefined
      const [, endpoint, check] = match
      const reportedNames =
        endpoint === 'readyz' ? [...checks.keys()].filter((name) => !nonReadiness.has(name)) : [...checks.keys()]
      const names = endpoint === 'livez' ? ['ping'] : reportedNames
      if (check === undefined) return report(names, endpoint!, { query, reader })
      return names.includes(check) ? report([check], endpoint!, { query, reader }) : undefined
    },
  }
}

interface Report {
  readonly query: URLSearchParams
  readonly reader: HealthReader
}
