import { it } from 'vitest'
import { provisioningCrash, MODES, VICTIMS } from './provisioning-crash.ts'
it('x', async () => {
  for (const m of MODES) {
    const run = await provisioningCrash(m)
    const t = performance.now()
    let n = 0, bad = 0, max = 0
    for (let effect = 1; effect <= run.effects.length; effect++) for (const when of ['before','after'] as const) for (const victim of VICTIMS) {
      n++
      const t1 = performance.now()
      try { await provisioningCrash(m, { at: { effect, when, victim }, expected: run.end }) } catch (e) { bad++; if (bad < 3) console.log((e as Error).message.slice(0, 15000)); else console.log((e as Error).message.slice(0,200)) }
      max = Math.max(max, performance.now() - t1)
    }
    console.log(m, run.effects.length, n, bad, (performance.now() - t) / n, max)
  }
}, 600000)
