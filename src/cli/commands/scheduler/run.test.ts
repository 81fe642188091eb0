import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { systemClock } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { createHttpFixture } from '../../../client/http/http.fixture.ts'
import { buildKubeconfig } from '../../../processes/kubeconfig.ts'
import { parseSchedulerFlags, runScheduler } from './run.ts'

it('SYS-5 stowage scheduler schedules pods over HTTP as the leader until it is stopped', async () => {
  const http = await createHttpFixture()
  const dir = await mkdtemp(join(tmpdir(), 'stowage-scheduler-'))
  const stop = new AbortController()
  try {
    const kubeconfig = join(dir, 'kubeconfig')
    const { pki, connection, client } = http
    await writeFile(
      kubeconfig,
      buildKubeconfig({ server: connection.server, caCert: pki.caCert, credential: pki.admin }),
    )
    const clock = systemClock()
    const deps = { clock, random: Math.random, log: silentLog, signal: stop.signal, env: {} }
    const schedulerRun = runScheduler({ kubeconfig, leaderElection: true }, deps)
    await client.create(nodeKind, { metadata: { name: 'n1' }, status: { allocatable: { cpu: '1', pods: '9' } } } as any)
    await client.create(podKind, {
      metadata: { namespace: 'default', name: 'web' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    } as any)
    const watchAbort = new AbortController()
    const fieldSelector = 'spec.nodeName=n1'
    for await (const event of client.watch(podKind, {
      fieldSelector,
      sendInitialEvents: true,
      signal: watchAbort.signal,
    })) {
      if (event.type === 'added') break
    }
    watchAbort.abort()
    const getLease = (name: string) => client.get(leaseKind, { namespace: 'kube-system', name })
    const holders = [await getLease('kube-scheduler'), await getLease('stowage-scheduler')].map(
      ({ spec }) => spec?.holderIdentity,
    )
    expect(holders[0]).toBeTruthy()
    expect(holders[1]).toBe(holders[0])
    stop.abort()
    await schedulerRun
  } finally {
    stop.abort()
    await http.stop()
    await rm(dir, { recursive: true })
  }
})

it.each([
  [{ capacityReservation: 'maybe' }, '--capacity-reservation "maybe": expected on or off'],
  [{ bindTimeoutSeconds: '-1' }, '--bind-timeout-seconds "-1": expected a whole number, 0 or more'],
  [{ schedulerNames: 'a,,b' }, '--scheduler-names "a,,b": expected names separated by commas'],
  [{ featureGates: 'Nonsense=true' }, '--feature-gates: unknown feature gate "Nonsense"'],
])('SYS-12 parseSchedulerFlags rejects %j with a usage error', (flags, message) => {
  expect(() => parseSchedulerFlags(flags)).toThrow(UsageError)
  expect(() => parseSchedulerFlags(flags)).toThrow(message)
})

it('PLUS-3 parseSchedulerFlags enables capacity reservation unless it is off', () => {
  expect(parseSchedulerFlags({}).reservesCapacity).toBe(true)
  expect(parseSchedulerFlags({ capacityReservation: 'off' }).reservesCapacity).toBe(false)
})
