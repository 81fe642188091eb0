// Creates and deletes pods on one node while agent and driver are killed at random. In the end every pod runs or is
// deleted, and node, driver and cluster agree that nothing else is left.
import { expect, it } from 'vitest'
import type { Random } from '../base/clock.ts'
import { createAgentFixture, NODE, PODS } from './agent.fixture.ts'

const SEEDS = [1, 2, 3, 4, 5]
const PODS_MAX = 100
const VOLUMES = 12

for (const seed of SEEDS) {
  it(`SYS-7 agent and driver killed during ${PODS_MAX} pods: all run or are deleted, nothing is orphaned (seed ${seed})`, async () => {
    const random = dice(seed)
    const world = await createAgentFixture()
    for (let index = 0; index < VOLUMES; index++) {
      const mode = index % 3 === 0 ? { volumeMode: 'Block' } : {}
      await world.aVolume(`v${index}`, { pv: mode, claim: mode })
    }
    const alive: string[] = []
    let made = 0
    let kills = 0
    while (made < PODS_MAX || alive.length > 0) {
      const chance = random()
      if (made < PODS_MAX && chance < 0.4) {
        const name = `p${made++}`
        const index = Math.floor(random() * VOLUMES)
        const claim = `v${index}`
        const device = { volumeMounts: [], volumeDevices: [{ name: claim, devicePath: '/dev/x' }] }
        await world.aPod(name, [claim], index % 3 === 0 ? { container: device } : {})
        alive.push(name)
      } else if (alive.length > 0 && chance < 0.75) {
        const [name] = alive.splice(Math.floor(random() * alive.length), 1)
        await world.server.delete(`${PODS}/${name}${random() < 0.2 ? '?gracePeriodSeconds=0' : ''}`)
      } else if (chance < 0.85) {
        kills++
        world.kill()
        world.start()
      } else if (chance < 0.92) {
        world.driverGoes()
      } else world.driverComes()
      for (let turn = Math.floor(random() * 12); turn > 0; turn--) await new Promise((next) => setImmediate(next))
      if (random() < 0.3) await world.server.clock.advance(random() * 3_000)
    }
    world.driverComes()
    await world.until(async () => (await world.server.get(PODS)).json.items.length === 0, 'every pod to be gone')
    await world.until(() => world.disk.mounted.size === 0, 'everything to be unmounted')
    await world.until(() => world.agent.standings().length === 0, 'the agent to be done')
    const left = Object.keys(world.disk.show()).filter((path) => path.includes('/pods/') || path.includes('vol_data'))
    expect(left).toEqual([])
    expect(Object.values(world.fake.state.volumes).filter(({ onNodes }) => onNodes[NODE])).toEqual([])
    expect(kills).toBeGreaterThan(5)
    expect(world.calls().filter((call) => call === 'NodePublishVolume').length).toBeGreaterThan(PODS_MAX / 2)
  })
}

function dice(seed: number): Random {
  let state = seed * 48_271
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
