// Places 300 volumes of 1Gi on 100 nodes with each placement policy. docs/explanation/scheduling.md has the table.
import { expect, it } from 'vitest'
import { aClaim, aClass, aPod, aSnapshot, runScenario } from './simulation.fixture.ts'

const NODES = Array.from({ length: 100 }, (_, index) => ({
  name: `node-${index}`,
  free: '10Gi',
  cpu: '32',
}))
const PODS = 300

/** Returns how many nodes have each number of volumes. */
async function countVolumes(placement: string | undefined): Promise<Record<number, number>> {
  const annotations = placement === undefined ? {} : { 'stowage.dev/placement': placement }
  const { metadata, ...fields } = aClass('local')
  const snapshot = aSnapshot(NODES, { classes: [{ metadata: { ...metadata, annotations }, ...fields }] })
  const names = Array.from({ length: PODS }, (_, index) => `p${index}`)
  const { placed } = await runScenario({
    snapshot,
    claims: names.map((name) => aClaim(name, '1Gi')),
    pods: names.map((name) => aPod(name, [name])),
  })
  expect(placed).toHaveLength(PODS)
  const counts: Record<number, number> = {}
  for (const { name } of NODES) {
    const count = placed.filter(({ node }) => node === name).length
    counts[count] = (counts[count] ?? 0) + 1
  }
  return counts
}

it.each([
  ['no policy', { 3: 100 }, undefined],
  ['the policy spread', { 3: 100 }, 'spread'],
  ['the policy pack', { 10: 30, 0: 70 }, 'pack'],
  ['the policy headroom', { 8: 37, 4: 1, 0: 62 }, 'headroom'],
  ['the policy headroom=50%', { 5: 60, 0: 40 }, 'headroom=50%'],
])(
  'PLUS-18 a simulation with %s places 300 volumes so that %j are the nodes by number of volumes',
  async (_, counts, placement) => {
    expect(await countVolumes(placement)).toEqual(counts)
  },
)

it('PLUS-18 a simulation uses the headroom when no node has space outside it', async () => {
  const snapshot = aSnapshot(NODES.slice(0, 2), {
    classes: [
      aClass('local', {
        metadata: { ...aClass('local').metadata, annotations: { 'stowage.dev/placement': 'headroom=50%' } },
      }),
    ],
  })
  const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
  const result = await runScenario({
    snapshot,
    claims: names.map((name) => aClaim(name, '1Gi')),
    pods: names.map((name) => aPod(name, [name])),
  })
  expect(result.fits).toBe(true)
})
