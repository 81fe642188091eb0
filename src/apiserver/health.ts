// /healthz, /livez and /readyz: is the process alive, and may clients come. Checks are named, so that
// `?verbose` says which one fails and `?exclude=` can leave one out.
import { type ApiAnswer, textAnswer } from './http/exchange.ts'

export interface Health {
  /** Registers a check for readiness; it is not ready until `ok` is called. */
  addReadiness(name: string): { ok(): void; failed(why: string): void }
  /** Registers a check for readiness that is asked every time: what is wrong, or nothing. Anyone may read the answer. */
  addCheck(name: string, problem: Check): void
  answer(path: string, query: URLSearchParams): Promise<ApiAnswer | undefined>
}

type Check = () => Promise<string | undefined>

export function createHealth(): Health {
  const checks = new Map<string, Check>([['ping', async () => undefined]])

  const report = async (names: readonly string[], title: string, query: URLSearchParams): Promise<ApiAnswer> => {
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
    if (failing) return textAnswer(503, `${lines.join('\n')}\n${title} check failed\n`)
    return textAnswer(200, query.has('verbose') ? `${lines.join('\n')}\n${title} check passed\n` : 'ok')
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
    addCheck: (name, problem) => void checks.set(name, problem),
    async answer(path, query) {
      const match = /^\/(healthz|livez|readyz)(?:\/([^/]+))?\/?$/.exec(path)
      if (!match) return undefined
      const [, endpoint, check] = match
      const names = endpoint === 'livez' ? ['ping'] : [...checks.keys()]
      if (check === undefined) return report(names, endpoint!, query)
      return names.includes(check) ? report([check], endpoint!, query) : undefined
    },
  }
}
