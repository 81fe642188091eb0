import { it } from 'vitest'
import { appendFileSync } from 'node:fs'
import { expansionCrash } from './expansion-crash.ts'
it('x', async () => {
  const { end } = await expansionCrash('transactions')
  await expansionCrash('transactions', { at: { effect: 1, when: 'before', victim: 'process' }, expected: end }).catch((e) => appendFileSync('/tmp/9b/c1.txt', e.message))
}, 100_000)
