// Announces to screen readers what has changed, as one summary at most every five seconds: `3 claims are now Bound`.
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { pluralize } from '../logic/format.ts'
import { onClaimChanges } from '../state/claim-table.ts'
import { claims } from '../state/collections.ts'

const INTERVAL_MS = 5_000
const WORDS_MAX = 3

export function Announcer() {
  const text = useSignal('')
  useEffect(() => {
    const counts = new Map<string, number>()
    const end = onClaimChanges((changes) => {
      if (claims.state.peek().is !== 'synced') return
      for (const { before, after } of changes) {
        const word = after ? after.status.word : 'deleted'
        if (before && before.status.word !== word) counts.set(word, (counts.get(word) ?? 0) + 1)
      }
    })
    const timer = setInterval(() => {
      if (counts.size === 0) return
      text.value = describe(counts)
      counts.clear()
    }, INTERVAL_MS)
    return () => {
      end()
      clearInterval(timer)
    }
  }, [])
  return (
    <div class="sr-only" aria-live="polite">
      {text.value}
    </div>
  )
}

const describe = (counts: ReadonlyMap<string, number>): string =>
  [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, WORDS_MAX)
    .map(([word, count]) => `${pluralize(count, 'claim')} ${count === 1 ? 'is' : 'are'} now ${word}`)
    .join(', ')
