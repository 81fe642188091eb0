import { describe, expect, it } from 'vitest'
import type { SimulationRun } from '../engine/run-plan.ts'
import { formatTimeline } from './timeline.ts'

describe('the timeline of a run', () => {
  it('shows the actions on the objects of the violation, and the objects at the end', () => {
    const timeline = formatTimeline(
      fakeRun({
        trace: [
          '     1.000s user: alice creates claim team-a/c1 (4Gi, net-now)',
          '     1.000s user: alice creates claim team-a/c10 (1Gi, basic)',
          '     1.001s user: alice creates claim team-a/c10 (1Gi, basic): done',
          '     1.001s user: alice creates claim team-a/c1 (4Gi, net-now): done',
          '     1.500s control-1 starts (1)',
          '     2.000s control-1: patch claim team-a/c1 (finalizers)',
          '     2.250s driver net.sim answers CreateVolume: OK',
          '     2.300s control-1: CreateVolume pvc-0a1b',
          '    62.500s fault: control-1 crashes, back after 5 s',
          '    62.500s control-1 crashes',
          '    67.500s control-1 starts (2)',
          '    68.000s the clock of agent-n1 jumps by 60000 ms',
          '   130.000s CHECK: leak',
        ],
        violations: [{ atMs: 130_000, rule: 'leak', text: 'net.sim has pvc-0a1b, which belongs to no volume.' }],
        objects: {
          'claim team-a/c1': {
            metadata: { namespace: 'team-a', name: 'c1', uid: '0a1b' },
            spec: { storageClassName: 'net-now' },
          },
          'claim team-a/c10': { metadata: { namespace: 'team-a', name: 'c10', uid: 'ffff' } },
        },
      }),
    )
    expect(timeline).toBe(`\
Seed 7: 20 steps in 60 minutes; 2 nodes, 1 × control, driver controllers in-process, commits atomic, capacity reservation off, quota by actual size.
Fault rates: none.

  0:01.0 ● user       alice creates claim team-a/c1 (4Gi, net-now): done
  0:02.0   control-1  patch claim team-a/c1 (finalizers)
  0:02.3   control-1  CreateVolume pvc-0a1b
  1:02.5 ✗            control-1 crashes, back after 5 s
  1:02.5 ✗ control-1  crashes
  1:07.5 ✗ control-1  starts (2)
  1:08.0 ✗ agent-n1   jumps by 60000 ms
Omitted lines about other objects: 3; --all shows them.

VIOLATION at 2:10.0, rule "leak": net.sim has pvc-0a1b, which belongs to no volume.

Objects at the end:
  claim team-a/c1
    metadata:
      namespace: team-a
      name: c1
      uid: 0a1b
    spec:
      storageClassName: net-now
`)
  })

  it('includes the volume of a claim, and the claim and attachment of a volume', () => {
    const objects = {
      'claim team-a/c1': { metadata: { namespace: 'team-a', name: 'c1' }, spec: { volumeName: 's0' } },
      'volume s0': {
        metadata: { name: 's0' },
        spec: { claimRef: { namespace: 'team-a', name: 'c1' }, csi: { volumeHandle: 'h-1' } },
      },
      'attachment csi-1': { metadata: { name: 'csi-1' }, spec: { source: { persistentVolumeName: 's0' } } },
      'volume s1': { metadata: { name: 's1' } },
    }
    const trace = ['team-a/c1', 's0', 'h-1', 'csi-1', 's1'].map((name) => `1.000s control-1: sees ${name}.`)
    const linesAbout = (text: string) =>
      formatTimeline(fakeRun({ trace, objects, violations: [{ atMs: 1, rule: 'missing', text }] })).match(
        /(?<=sees )\S+(?=\.)/g,
      )
    expect(linesAbout('volume s0 is gone')).toEqual(['team-a/c1', 's0', 'h-1', 'csi-1'])
    expect(linesAbout('volume s1 is gone')).toEqual(['s1'])
    expect(linesAbout('something is wrong')).toHaveLength(5)
  })

  it('includes the pod that owns a claim, and all user actions of a small plan', () => {
    const ownerReferences = [{ name: 'p5' }]
    const objects = {
      'claim team-a/p5-own-0': { metadata: { namespace: 'team-a', name: 'p5-own-0', ownerReferences } },
    }
    const violations = [{ atMs: 1, rule: 'not deleted', text: 'claim team-a/p5-own-0 is stuck in its deletion' }]
    const trace = [
      '1.000s user: alice creates pod team-a/p5: done',
      '1.000s control-1: sees team-a/p5',
      '1.000s control-1: sees team-a/p6',
      '2.000s user: alice edits node n1: done',
    ]
    const largeRun = fakeRun({ trace, objects, violations })
    expect(formatTimeline(largeRun)).toContain('alice creates pod team-a/p5')
    expect(formatTimeline(largeRun)).toContain('sees team-a/p5')
    expect(formatTimeline(largeRun)).not.toContain('team-a/p6')
    expect(formatTimeline(largeRun)).not.toContain('alice edits node n1')
    const smallTimeline = formatTimeline({
      ...largeRun,
      plan: { ...largeRun.plan, steps: largeRun.plan.steps.slice(0, 10) },
    })
    expect(smallTimeline).toContain('alice edits node n1')
    expect(smallTimeline).not.toContain('team-a/p6')
  })

  it('shortens thousands of lines to about 60: first, last and user actions, with counts of omitted lines', () => {
    const trace = Array.from({ length: 5_000 }, (_, index) =>
      index === 2_500
        ? `${index}.000s user: alice deletes claim team-a/c1: done`
        : index % 500 === 499
          ? `${index}.000s fault: watches break`
          : `${index}.000s control-${index % 2}: patch claim team-a/c1 (try ${index})`,
    )
    const violations = [{ atMs: 1, rule: 'leak', text: 'claim team-a/c1' }]
    const lines = formatTimeline(fakeRun({ trace, violations })).split('\n')
    expect(lines.length).toBeLessThanOrEqual(68)
    expect(lines.length).toBeGreaterThan(40)
    const timeline = lines.join('\n')
    expect(timeline).toContain('(try 0)')
    expect(timeline).toContain('alice deletes claim')
    expect(timeline).toContain('(try 4998)')
    expect(timeline).toMatch(/… 499 lines until 41:38\.0: 250 control-0, 249 control-1/)
    const omittedLines = timeline.match(/(?<=… )\d+(?= lines)/g)!.reduce((sum, count) => sum + Number(count), 0)
    const timedLines = lines.filter((line) => /^ +\d+:\d\d\.\d /.test(line)).length
    expect(omittedLines + timedLines).toBe(5_000)

    const fullTimeline = formatTimeline(fakeRun({ trace, violations }), { all: true })
    expect(fullTimeline.split('\n').length).toBeGreaterThan(5_000)
  })

  it('merges repeated lines into one with a count', () => {
    const trace = ['1.000s control-1: lists claims', '2.000s control-1: lists claims', '3.000s control-2: lists claims']
    const timeline = formatTimeline(fakeRun({ trace, violations: [] }))
    expect(timeline).toContain('0:01.0   control-1  lists claims (2 times)\n')
    expect(timeline).toContain('0:03.0   control-2  lists claims\n')
    expect(timeline).toContain('No violation.')
  })

  it('prints the first violations and counts the others', () => {
    const violations = Array.from({ length: 9 }, (_, index) => ({
      atMs: index,
      rule: 'leak',
      text: `volume number ${index}`,
    }))
    const timeline = formatTimeline(fakeRun({ violations }))
    expect(timeline.match(/VIOLATION/g)).toHaveLength(6)
    expect(timeline).toContain('… and 3 more violations.')
  })
})

function fakeRun(overrides: Partial<SimulationRun>): SimulationRun {
  return {
    plan: {
      seed: 7,
      minutes: 60,
      setup: {
        nodes: 2,
        controlReplicas: 1,
        driverControllers: 'in-process',
        commits: 'atomic',
        capacityReservation: false,
        expansionQuota: 'actual',
        netExpandsWithoutNode: false,
      },
      faultRates: { network: {}, diskErrors: 0, drivers: {}, crashes: {} },
      steps: Array.from({ length: 20 }, () => ({ atMs: 0, action: { do: 'create', kind: 'pod', object: {} } })),
    },
    violations: [],
    trace: [],
    fingerprint: 0,
    virtualMs: 0,
    operations: {},
    faults: {},
    ...overrides,
  }
}
