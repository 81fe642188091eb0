// Creates and deletes pods on one node while the agent is killed and the driver is stopped at random. At the end all pods
// are deleted, and no mounts, records or published volumes remain.
import { describe, expect, it } from 'vitest'
import type { Random } from '../base/clock.ts'
import { createAgentFixture, NODE, PODS } from './agent.fixture.ts'

const SEEDS = [1, 2, 3, 4, 5]
const POD_COUNT = 100
const VOLUME_COUNT = 12

describe('an agent that is killed at random', () => {
  for (const seed of SEEDS) {
    it(`SYS-7 unmounts the volumes of all ${POD_COUNT} deleted pods (seed ${seed})`, async () => {
      const random = seededRandom(seed)
      const fixture = await createAgentFixture()
      for (let index = 0; index < VOLUME_COUNT; index++) {
        const mode = index % 3 === 0 ? { volumeMode: 'Block' } : {}
        await fixture.createVolume(`v${index}`, { pv: mode, claim: mode })
      }
      const podNames: string[] = []
      let createdCount = 0
      let kills = 0
      while (createdCount < POD_COUNT || podNames.length > 0) {
        const chance = random()
        if (createdCount < POD_COUNT && chance < 0.4) {
          const name = `p${createdCount++}`
          const index = Math.floor(random() * VOLUME_COUNT)
          const claim = `v${index}`
          const device = { volumeMounts: [], volumeDevices: [{ name: claim, devicePath: '/dev/x' }] }
          await fixture.createPod(name, [claim], index % 3 === 0 ? { container: device } : {})
          podNames.push(name)
        } else if (podNames.length > 0 && chance < 0.75) {
          const [name] = podNames.splice(Math.floor(random() * podNames.length), 1)
          await fixture.server.delete(`${PODS}/${name}${random() < 0.2 ? '?gracePeriodSeconds=0' : ''}`)
        } else if (chance < 0.85) {
          kills++
          fixture.kill()
          fixture.start()
        } else if (chance < 0.92) {
          fixture.stopDriver()
        } else fixture.startDriver()
        for (let turns = Math.floor(random() * 12); turns > 0; turns--) await new Promise((next) => setImmediate(next))
        if (random() < 0.3) await fixture.server.clock.advance(random() * 3_000)
      }
      fixture.startDriver()
      await fixture.waitUntil(
        async () => (await fixture.server.get(PODS)).json.items.length === 0,
        'all pods to be deleted',
      )
      await fixture.waitUntil(() => fixture.disk.mountPoints.size === 0, 'all volumes to be unmounted')
      await fixture.waitUntil(() => fixture.agent.queueStates().length === 0, 'the agent to complete')
      const remainingPaths = Object.keys(fixture.disk.snapshot()).filter(
        (path) => path.includes('/pods/') || path.includes('vol_data'),
      )
      expect(remainingPaths).toEqual([])
      expect(Object.values(fixture.fake.state.volumes).filter(({ onNodes }) => onNodes[NODE])).toEqual([])
      expect(kills).toBeGreaterThan(5)
      expect(fixture.calls().filter((call) => call === 'NodePublishVolume').length).toBeGreaterThan(POD_COUNT / 2)
    })
  }
})

function seededRandom(seed: number): Random {
  let state = seed * 48_271
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
