import { it } from 'vitest'
import { claimsBecomeVolumes } from './claims-become-volumes.ts'
const from = Number(process.env.FROM ?? 1), to = Number(process.env.TO ?? 20), LINES = Number(process.env.LINES ?? 0)
it('x', async () => {
    const t = process.cpuUsage().user/1000
    let n = 0, bad = 0, steps = 0, eff = 0
    const kinds = new Map<string, number[]>()
    for (let seed = from; seed <= to; seed++) {
      n++
      try { const r = await claimsBecomeVolumes(seed); steps += r.world.steps; eff += r.effects } catch (e) { bad++; 
        const m = (e as Error).message
        if (LINES) console.log(m.length > LINES ? m.slice(0, LINES) : m)
        const first = m.split('\n--')[0]!.split('\n').slice(0, 4).join(' | ')
        const k = first.replace(/[0-9a-f-]{36}/g, 'U').replace(/\d+/g, '#').slice(0, 260)
        kinds.set(k, [...(kinds.get(k) ?? []), seed])
      }
    }
    for (const [k, s] of kinds) console.log(s.length, s.slice(0, 6).join(','), k)
    console.log(n, bad, (process.cpuUsage().user/1000 - t) / n, steps / n, eff / n)
}, 3000000)
