import { it } from 'vitest'
import { modifyingInABadWorld } from './modifying.ts'

it('seeds', async () => {
  const first = Number(process.env.SIM_FIRST_SEED ?? 1)
  let failed = 0
  const t = Date.now()
  const list =
    process.env.LIST?.split(',').map(Number) ??
    Array.from({ length: Number(process.env.SIM_SEEDS) }, (_, i) => first + i)
  for (const seed of list) {
    await modifyingInABadWorld(seed).catch((e: Error) => {
      failed++
      console.log(e.message.split('-- what is there')[0])
    })
  }
  console.log(`${failed} failed, ${Date.now() - t} ms`)
}, 1_800_000)
