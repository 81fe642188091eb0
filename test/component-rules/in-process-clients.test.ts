// Checks that every component of the server process has a row in component-rules.ts: each client without HTTP belongs to a
// component with rules, to a node, or to the server itself.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from './suites.ts'

/** The calls that create a client without HTTP, by file. */
const EXPECTED_CALLS = {
  // Clients of components. The parameter type admits only components with rules.
  'src/processes/server/component-clients.ts': ['inProcessClient(server.objects, userOf(component), authorizer)'],
  'src/processes/server/nodes/node-identity.ts': ['inProcessClient(objects, nodeUser(nodeName), authorizer)'],
  // The server itself, which creates the objects that it needs at startup. No controller uses this client.
  'src/processes/server/serve.ts': ['inProcessClient(server.objects, SYSTEM_USER)'],
  // The same for the cluster of the warm-up, which has its own objects.
  'src/processes/warm-up/synthetic-cluster.ts': ['inProcessClient(server.objects, SYSTEM_USER)'],
}

it('SYS-9 every client without HTTP belongs to a component with rules, a node or the server itself', () => {
  const files = ['processes', 'cli'].flatMap((folder) =>
    readdirSync(join(ROOT, 'src', folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\.(test|fixture|contract)\.ts$/.test(name))
      .map((name) => `src/${folder}/${name}`),
  )
  const calls = files.flatMap((file) => {
    const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/\s+/g, ' ')
    const fileCalls = [...source.matchAll(/inProcessClient\(((?:[^()]|\([^()]*\))*)\)/g)].map(([call]) => call)
    return fileCalls.length > 0 ? [[file, fileCalls]] : []
  })
  expect(Object.fromEntries(calls)).toEqual(EXPECTED_CALLS)
})
