import { describe, expect, it } from 'vitest'
import { CsiError } from './errors.ts'
import { readDriverFacts } from './facts.ts'
import { createScriptedDriver } from './scripted-driver.fixture.ts'

describe('readDriverFacts', () => {
  it('SYS-6 returns capabilities with their names in csi.proto', async () => {
    const rpc = (type: number) => ({ type: { case: 'rpc', value: { type } } })
    const facts = await readDriverFacts(
      createScriptedDriver({
        GetPluginInfo: [{ name: 'd.example.com', vendorVersion: '2' }],
        GetPluginCapabilities: [
          {
            capabilities: [
              { type: { case: 'service', value: { type: 1 } } },
              { type: { case: 'volumeExpansion', value: { type: 2 } } },
            ],
          },
        ],
        ControllerGetCapabilities: [{ capabilities: [rpc(1), rpc(14), rpc(99), {}] }],
        NodeGetCapabilities: [{ capabilities: [rpc(3)] }],
      }),
    )
    expect(facts).toEqual({
      name: 'd.example.com',
      version: '2',
      plugin: new Set(['CONTROLLER_SERVICE']),
      expansion: new Set(['OFFLINE']),
      controller: new Set(['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME']),
      node: new Set(['EXPAND_VOLUME']),
    })
  })

  it('SYS-6 omits unimplemented services and rejects if a call fails', async () => {
    const info = { GetPluginInfo: [{ name: 'd.example.com', vendorVersion: '2' }] }
    expect(await readDriverFacts(createScriptedDriver(info))).toMatchObject({ controller: new Set(), node: new Set() })
    const failingDriver = createScriptedDriver({
      ...info,
      NodeGetCapabilities: [new CsiError('UNAVAILABLE', 'not running')],
    })
    await expect(readDriverFacts(failingDriver)).rejects.toThrow('not running')
  })
})
