import { it } from 'vitest'
import { appendFileSync } from 'node:fs'
import { expansionCrash } from './expansion-crash.ts'
it('x', async () => {
  const t0 = performance.now()
  const { effects, end, steps } = await expansionCrash('transactions')
  appendFileSync('/tmp/9b/c.txt', `undisturbed ${Math.round(performance.now() - t0)}ms ${effects.length} effects ${steps} steps\n`)
  let n = 0
  for (let index = 0; index < effects.length && performance.now() - t0 < 40_000; index++)
    for (const when of ['before', 'after'] as const)
      for (const victim of ['process', 'server', 'driver'] as const) {
        const t = performance.now()
        n++
        const bad = await expansionCrash('transactions', { at: { effect: index + 1, when, victim }, expected: end }).then(() => '', (e) => e.message)
        const took = performance.now() - t
        if (bad || took > 1000) appendFileSync('/tmp/9b/c.txt', `${index + 1} ${when} ${victim} ${effects[index]} ${Math.round(took)}ms ${bad}\n`)
      }
  appendFileSync('/tmp/9b/c.txt', `${n} points ${performance.now() - t0}\n`)
}, 100_000)
