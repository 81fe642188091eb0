// /healthz, /livez and /readyz: is the process alive, and may clients come. Checks are named, so that
// `?verbose` says which one fails and `?exclude=` can leave one out.
import { type ApiAnswer, textAnswer } from './exchange.ts'

export interface Health {
  /** Registers a check for readiness; it is not ready until `ok` is called. */
  addReadiness(name: string): { ok(): void; failed(why: string): void }
  readonly ready: boolean
  answer(path: string, query: URLSearchParams): ApiAnswer | undefined
}

export function createHealth(): Health {
  const problems = new Map<string, string | undefined>([['ping', undefined]])

  const report = (names: readonly string[], title: string, query: URLSearchParams): ApiAnswer => {
    const excluded = new Set(query.getAll('exclude'))
    const lines: string[] = []
    let failing = false
    for (const name of names) {
      const why = excluded.has(name) ? undefined : problems.get(name)
      if (why !== undefined) failing = true
      lines.push(
        excluded.has(name)
          ? `[+]${name} excluded: ok`
          : why === undefined
            ? `[+]${name} ok`
            : `[-]${name} failed: ${why}`,
      )
    }
    if (failing) return textAnswer(503, `${lines.join('\n')}\n${title} check failed\n`)
    return textAnswer(200, query.has('verbose') ? `${lines.join('\n')}\n${title} check passed\n` : 'ok')
  }

  return {
    get ready() {
      return [...problems.values()].every((why) => why === undefined)
    },
    addReadiness(name) {
      problems.set(name, 'not done yet')
      return { ok: () => void problems.set(name, undefined), failed: (why) => void problems.set(name, why) }
    },
    answer(path, query) {
      const match = /^\/(healthz|livez|readyz)(?:\/([^/]+))?\/?$/.exec(path)
      if (!match) return undefined
      const [, endpoint, check] = match
      const names = endpoint === 'livez' ? ['ping'] : [...problems.keys()]
      if (check === undefined) return report(names, endpoint!, query)
      return names.includes(check) ? report([check], endpoint!, query) : undefined
    },
  }
}
