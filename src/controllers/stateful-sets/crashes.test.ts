// Kills the controller between any two writes of a scenario that creates, scales and updates a set. The next controller must
// reach the same state, with the same claims.
import { expect, it } from 'vitest'
import { CLAIMS, type ControllerFixture, createControllerFixture, PODS, REVISIONS, SETS } from './controller.fixture.ts'

const STEPS: readonly { readonly patch: object; readonly image: string; readonly replicas: number }[] = [
  { patch: {}, image: 'v1', replicas: 2 },
  { patch: { spec: { replicas: 1 } }, image: 'v1', replicas: 1 },
  {
    patch: { spec: { replicas: 2, template: { spec: { containers: [{ name: 'c', image: 'v2' }] } } } },
    image: 'v2',
    replicas: 2,
  },
]

/** Runs the scenario. Starts another controller after the crash. Returns the number of writes and the final state. */
async function runScenario(crashAtWrite?: number): Promise<{ writes: number; hasCrashed: boolean; state: unknown }> {
  const fixture = await createControllerFixture()
  let hasCrashed = false
  try {
    fixture.start(crashAtWrite)
    await fixture.createSet({ replicas: 2, persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } })
    const claimUids: string[] = []
    for (const { patch, image, replicas } of STEPS) {
      await fixture.patchSet(patch)
      await fixture.settle(async () => {
        if (fixture.hasCrashed()) {
          hasCrashed = true
          await fixture.stop()
          fixture.start()
        }
        return isReached(fixture, image, replicas)
      }, `${replicas} pods of ${image}`)
      claimUids.push((await fixture.list(CLAIMS)).map(({ metadata }) => metadata.uid).join())
    }
    expect(new Set(claimUids).size).toBe(1) // the claims survive scaling and updates
    return { writes: fixture.writeCount(), hasCrashed, state: await readState(fixture) }
  } finally {
    await fixture.close()
  }
}

async function isReached({ server, list }: ControllerFixture, image: string, replicas: number): Promise<boolean> {
  const { status, metadata } = (await server.get(`${SETS}/web`)).json
  const pods = await list(PODS)
  return (
    pods.length === replicas &&
    pods.every(({ spec }) => spec.containers[0].image === image) &&
    status.observedGeneration === metadata.generation &&
    status.readyReplicas === replicas &&
    status.currentRevision === status.updateRevision
  )
}

/** Returns the state that must be the same with and without crashes. */
async function readState({ server, list }: ControllerFixture) {
  return {
    status: (await server.get(`${SETS}/web`)).json.status,
    pods: (await list(PODS)).map(({ metadata }) => [metadata.name, metadata.labels]),
    claims: (await list(CLAIMS)).map(({ metadata }) => [metadata.name, metadata.ownerReferences.length]),
    revisions: (await list(REVISIONS)).map(({ metadata, revision }) => [metadata.name, revision]),
  }
}

it('SYS-27 reaches the same state after a crash between any two writes', { timeout: 120_000 }, async () => {
  const { writes, state } = await runScenario()
  expect(writes).toBeGreaterThan(15)
  for (let write = 1; write <= writes; write++) {
    const run = await runScenario(write)
    expect({ write, hasCrashed: run.hasCrashed, state: run.state }).toEqual({ write, hasCrashed: true, state })
  }
})
