import { describe, expect, it } from 'vitest'
import { ApiError } from '../api/status-error.ts'
import { parseMetrics } from '../volumes/volume-usage.ts'
import { readUsage, type UsageDeps } from './read-usage.ts'

type Responses = Readonly<Record<string, { readonly status: number; readonly text: string } | Error>>

/** Creates dependencies with these responses by path, which record the paths of all requests. */
function depsOf(responses: Responses, { isStowage = false } = {}): UsageDeps & { readonly paths: string[] } {
  const paths: string[] = []
  return {
    paths,
    client: { serves: async () => isStowage },
    transport: {
      async call({ path }) {
        paths.push(path)
        const response = responses[path] ?? new ApiError(503, 'ServiceUnavailable', 'connection refused')
        if (response instanceof Error) throw response
        return { headers: {}, ...response }
      },
    },
    signal: new AbortController().signal,
    progress: { add() {} },
  }
}

const summaryPath = (node: string) => `/api/v1/nodes/${node}/proxy/stats/summary`

const aSummary = (...volumes: object[]) => ({
  status: 200,
  text: JSON.stringify({ node: {}, pods: [{ volume: volumes }] }),
})

describe('usage of volumes', () => {
  it('PLUS-16 is read from the metrics of a Stowage server', async () => {
    const labels = 'namespace="shop",persistentvolumeclaim="orders"'
    const text = [
      '# HELP kubelet_volume_stats_used_bytes Number of used bytes in the volume',
      `kubelet_volume_stats_used_bytes{${labels}} 1.5e3`,
      `kubelet_volume_stats_available_bytes{${labels}} 500`,
      `stowage_volume_iops_used{${labels},direction="read"} 10`,
      `stowage_volume_iops_used{${labels},direction="write"} 30`,
      `stowage_volume_growth_bytes_per_day{${labels}} Nan`,
      'stowage_store_keys 12',
      '',
    ].join('\n')
    const report = await readUsage(['node-1'], depsOf({ '/metrics': { status: 200, text } }, { isStowage: true }))
    expect([...report.byClaim]).toEqual([['shop/orders', { usedBytes: 1_500, freeBytes: 500, iops: 40 }]])
  })

  it('PLUS-16 of a volume that several nodes have mounted is the bytes of one node and the sum of the iops', () => {
    const sample = (process: string, amount: string, value: number) =>
      `stowage_reported_volume_usage{namespace="shop",persistentvolumeclaim="orders",process="${process}",amount="${amount}"} ${value}`
    const reports = [
      ...[sample('b', 'used_bytes', 900), sample('b', 'available_bytes', 1_100), sample('b', 'iops', 10)],
      ...[sample('a', 'used_bytes', 950), sample('a', 'available_bytes', 50), sample('a', 'iops', 5)],
    ]
    expect([...parseMetrics(reports.join('\n'))]).toEqual([
      ['shop/orders', { usedBytes: 900, freeBytes: 1_100, iops: 15 }], // the node a has not measured the larger file system yet
    ])
    const labels = 'namespace="shop",persistentvolumeclaim="orders"'
    const twice = [
      `kubelet_volume_stats_used_bytes{${labels},node="a"} 5`,
      `kubelet_volume_stats_used_bytes{${labels},node="b"} 6`,
    ]
    expect([...parseMetrics(twice.join('\n'))]).toEqual([['shop/orders', { usedBytes: 6 }]])
  })

  it('PLUS-16 is read from the kubelets through nodes/proxy on other API servers, with a reason for each node that fails', async () => {
    const deps = depsOf({
      [summaryPath('node-1')]: aSummary(
        {
          name: 'data',
          pvcRef: { namespace: 'shop', name: 'orders' },
          usedBytes: 7,
          availableBytes: 3,
          inodes: 10,
          inodesUsed: 2,
        },
        { name: 'token', usedBytes: 4_096 },
      ),
      [summaryPath('node-2')]: { status: 200, text: '<html>' },
    })
    const report = await readUsage(['node-1', 'node-2', 'node-3'], deps)
    expect([...report.byClaim]).toEqual([['shop/orders', { usedBytes: 7, freeBytes: 3, inodes: 10, inodesUsed: 2 }]])
    expect([...report.nodeProblems.keys()]).toEqual(['node-2', 'node-3'])
    expect(report.nodeProblems.get('node-2')).toMatch(/^the response of its kubelet is not valid: /)
    expect(report.nodeProblems.get('node-3')).toBe('the statistics of its kubelet cannot be read: connection refused')
    expect(report).not.toHaveProperty('missingRule')
  })

  it('PLUS-16 is unknown without permission: the report names the missing rule, and no further nodes are queried', async () => {
    const nodes = Array.from({ length: 50 }, (_, index) => `node-${index}`)
    const responses = Object.fromEntries(nodes.map((node) => [summaryPath(node), { status: 403, text: '{}' }]))
    const deps = depsOf(responses)
    expect((await readUsage(nodes, deps)).missingRule).toBe('get nodes/proxy')
    expect(deps.paths.length).toBeLessThan(20)
    const stowage = depsOf({ '/metrics': { status: 403, text: '{}' } }, { isStowage: true })
    expect((await readUsage(nodes, stowage)).missingRule).toBe('get the path /metrics')
  })

  it('PLUS-16 is unknown with a reason if the server stops responding', async () => {
    const report = await readUsage([], depsOf({}, { isStowage: true }))
    expect(report).toMatchObject({ problem: 'connection refused' })
    expect(report.byClaim.size).toBe(0)
  })

  it('PLUS-16 is absent, not zero, for a volume that was not measured', () => {
    expect(parseMetrics('kubelet_volume_stats_capacity_bytes{namespace="a",persistentvolumeclaim="b"} 5\n').size).toBe(
      0,
    )
  })
})
