// /healthz, /livez and /readyz: is the process alive, and is it ready for clients. Checks have names: `?verbose` shows which
// one fails, and `?exclude=` omits one.
import { type ApiResponse, textResponse } from './http/messages.ts'

export interface Health {
  /** Registers a readiness check that fails until `ok` is called. */
  addReadiness(name: string): { ok(): void; failed(why: string): void }
  /** Registers a check that runs on every request and returns the problem, if any. Its text is public. Default: a readiness check. */
  addCheck(name: string, problem: Check, options?: { readonly isReadiness: boolean }): void
  handle(path: string, query: URLSearchParams): Promise<ApiResponse | undefined>
}

type Check = () => Promise<string | undefined>

export function createHealth(): Health {
  const checks = new Map<string, Check>([['ping', async () => undefined]])
  /** Checks that /healthz reports and that do not keep clients away. */
  const healthOnly = new Set<string>()

  const report = async (names: readonly string[], title: string, query: URLSearchParams): Promise<ApiResponse> => {
    const excluded = new Set(query.getAll('exclude'))
    let failing = false
    const line = async (name: string) => {
      if (excluded.has(name)) return `[+]${name} excluded: ok`
      const why = await checks.get(name)?.()
      if (why === undefined) return `[+]${name} ok`
      failing = true
      return `[-]${name} failed: ${why}`
    }
    const lines = await Promise.all(names.map(line))
    if (failing) return textResponse(503, `${lines.join('\n')}\n${title} check failed\n`)
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
        failed(why) {
          problem = why
        },
      }
    },
    addCheck(name, problem, { isReadiness } = { isReadiness: true }) {
      checks.set(name, problem)
      if (!isReadiness) healthOnly.add(name)
    },
    async handle(path, query) {
      const match = /^\/(healthz|livez|readyz)(?:\/([^/]+))?\/?$/.exec(path)
      if (!match) return undefined
      const [, endpoint, check] = match
      const shown =
        endpoint === 'readyz' ? [...checks.keys()].filter((name) => !healthOnly.has(name)) : [...checks.keys()]
      const names = endpoint === 'livez' ? ['ping'] : shown
      if (check === undefined) return report(names, endpoint!, query)
      return names.includes(check) ? report([check], endpoint!, query) : undefined
    },
  }
}
