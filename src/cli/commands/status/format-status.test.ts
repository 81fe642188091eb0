import { expect, it } from 'vitest'
import { formatBytes, formatShortAge, formatStatus } from './format-status.ts'
import { parseFailedChecks, sampleOf } from './query-server.ts'

it('formatStatus prints problems, nodes that are not ready and expired certificates', () => {
  const text = formatStatus({
    dataDir: '/data',
    isRunning: true,
    isHealthy: false,
    problems: ['store failed: the disk is full'],
    server: { pid: 7, command: 'server', version: '9.9.9', startTime: '2026-01-01T00:00:00Z', uptimeSeconds: 61 },
    store: { kind: 'etcd' },
    leader: 'host_1',
    nodes: [{ name: 'node-1', isReady: false, version: 'v9.9.9' }],
    machine: { podProcesses: 0, mounts: 2, loopDevices: 1 },
    certificates: [{ name: 'ca', expires: '2026-01-01T00:00:00Z', isExpired: true }],
  })
  expect(text).toMatch(/^Stowage 9.9.9 \(this program is [\w.-]+\) is running: stowage server, pid 7, up for 1m1s.\n/)
  expect(text).toContain('health       store failed: the disk is full\n')
  expect(text).toContain('nodes        node-1 (not ready)\n')
  expect(text).toContain('machine      0 processes of pods, 2 mounts, 1 loop device\n')
  expect(text).toContain('leader       host_1\n')
  expect(text).toContain('certificate  ca expired at 2026-01-01T00:00:00Z\n')
})

it('parseFailedChecks and sampleOf read the failed checks of /readyz and the values of metrics', () => {
  expect(parseFailedChecks({ status: 200, text: 'ok' })).toEqual([])
  expect(parseFailedChecks({ status: 503, text: '[+]ping ok\n[-]store failed: full\n' })).toEqual([
    'store failed: full',
  ])
  expect(parseFailedChecks({ status: 401, text: 'who?\n' })).toEqual(['/readyz responds with 401: who?'])
  const metrics = '# HELP a_b x\na_b_c 1\na_b{x="y"} 2e3\n'
  expect([sampleOf(metrics, 'a_b'), sampleOf(metrics, 'a_b_c'), sampleOf(metrics, 'a')]).toEqual([2000, 1, undefined])
})

it('formatShortAge writes at most two units, and formatBytes one', () => {
  expect([5, 65, 3_600, 90_000].map(formatShortAge)).toEqual(['5s', '1m5s', '1h0m', '1d1h'])
  expect([0, 1_023, 1_536, 300 * 1024 ** 2].map(formatBytes)).toEqual(['0 B', '1023 B', '1.5 KiB', '300 MiB'])
})
