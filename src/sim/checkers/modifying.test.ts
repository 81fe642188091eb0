// The checker itself: each case does one wrong thing, and must be convicted of it.
import { beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { fakeSettings } from '../../csi/fake/index.ts'
import type { CsiDriver } from '../../csi/index.ts'
import { type Cluster, createCluster } from '../cluster.ts'
import { createSimDriver, type SimDriver } from '../driver.ts'
import { CLASSES, modifiableClaims } from '../scenarios/modifying-world.ts'
import { createWorld, type World } from '../world.ts'
import { checkModifying, type ModifyingChecker, UNDO } from './modifying.ts'

let world: World
let cluster: Cluster
let driver: SimDriver
let checker: ModifyingChecker
let crimes: string[]

beforeEach(async () => {
  world = createWorld(1)
  cluster = await createCluster(world)
  const pools = [{ name: 'pool', capacityBytes: 1024 ** 4 }]
  driver = createSimDriver(world, 'driver', fakeSettings({ pools }))
  crimes = []
  const knownKeys = driver.settings.mutableKeys
  const convict = (crime: string) => void crimes.push(crime)
  checker = checkModifying({ cluster, driver, classes: CLASSES, knownKeys, workers: 1, convict })
  const start = { names: ['a', 'b'], silver: ['a', 'b'], classes: ['silver', 'gold', 'odd'], goldMax: 5 }
  await done(modifiableClaims(cluster.direct()!, driver, start))
})

async function done(work: Promise<unknown>): Promise<void> {
  let isDone = false
  void work.then(() => {
    isDone = true
  })
  await world.runUntil(() => isDone, { withinMs: 60_000, waitingFor: 'it' })
  await world.runFor(1_000)
}

const patch = (body: object, subresource?: 'status') => {
  const ref = { namespace: 'default', name: 'a' }
  return done(cluster.direct()!.patch(persistentVolumeClaimKind, ref, { type: 'merge', body }, { subresource }))
}

const ask = (witness: CsiDriver, volumeId: string, mutableParameters: Record<string, string>) =>
  witness.controller.controllerModifyVolume({ volumeId, mutableParameters })
const aWitness = () => checker.witness(driver.driverFor({ alive: true, pass: (work) => work }))

describe('the checker of attributes', () => {
  it('SYS-14 finds nothing wrong with what is well', () => {
    expect(crimes).toEqual([])
    expect(checker.problems()).toEqual([])
  })

  it('SYS-14 convicts a status that says what the driver has not', async () => {
    await patch({ status: { currentVolumeAttributesClassName: 'gold' } }, 'status')
    expect(crimes.join()).toMatch(/a is said to have iops=1000, its volume has 500/)
  })

  it('SYS-14 convicts a volume that has what no status says', () => {
    const held = driver.state().volumes['vol-a']!
    driver.state().volumes['vol-a'] = { ...held, mutableParameters: { iops: '7', tier: 'silver' } }
    expect(checker.problems().join()).toMatch(/a: the driver has .*"7"/)
  })

  it('SYS-14 convicts a claim that could have what it wants, and one that cannot and does not say so', async () => {
    await patch({ spec: { volumeAttributesClassName: 'gold' } })
    expect(checker.problems().join()).toMatch(/a wants what it could have/)
    await patch({ spec: { volumeAttributesClassName: 'odd' } })
    expect(checker.problems().join()).toMatch(/does not say why not.*no event says why.*should be Infeasible/)
  })

  it('SYS-14 convicts calls that no claim speaks of, without a way back, twice at once, or by too many workers', async () => {
    const witness = aWitness()
    void ask(witness, 'vol-a', { iops: '1000' }).catch(() => {})
    void ask(witness, 'vol-a', { iops: '1000' }).catch(() => {})
    void ask(witness, 'vol-b', { iops: '500' }).catch(() => {})
    await world.runFor(1_000)
    expect(crimes.join()).toMatch(/the claim does not say so/)
    expect(crimes.join()).toMatch(/iops of a is about to be 1000 in place of 500, with no way back/)
    expect(crimes.join()).toMatch(/vol-a undergoes two changes at once/)
    expect(crimes.join()).toMatch(/2 changes at once, with 1 workers/)
  })

  it('SYS-14 finds nothing wrong with a call that is on record', async () => {
    const witness = aWitness()
    const annotations = { [UNDO]: '{"iops":"500"}' }
    await patch({ metadata: { annotations }, spec: { volumeAttributesClassName: 'gold' } })
    await done(ask(witness, 'vol-a', { iops: '1000' }))
    expect(crimes).toEqual([])
  })
})
