import { describe, expect, it } from 'vitest'
import type { DriverFacts } from '../../../csi/index.ts'
import { parseControllers } from './parse-controllers.ts'
import { selectControllers } from './select-controllers.ts'

const listEnabled = (text: string) => [...parseControllers(text).enabledNames]

const aDriver = (controller: readonly string[], plugin = ['CONTROLLER_SERVICE']): DriverFacts => ({
  name: 'disks.example.com',
  version: '1',
  plugin: new Set(plugin) as DriverFacts['plugin'],
  expansion: new Set(),
  controller: new Set(controller) as DriverFacts['controller'],
  node: new Set(),
})
const listSelected = (text: string, driver: DriverFacts) => [...selectControllers(parseControllers(text), driver)]

describe('--controllers', () => {
  it('PLUS-5 selects all controllers, those that are named, or all but those with a minus', () => {
    const allNames = ['provisioner', 'resizer', 'modifier', 'attacher', 'health-monitor']
    expect(listEnabled('*')).toEqual(allNames)
    expect(listEnabled('attacher, provisioner')).toEqual(['attacher', 'provisioner'])
    expect(listEnabled('-attacher')).toEqual(['provisioner', 'resizer', 'modifier', 'health-monitor'])
    expect(listEnabled('*,-attacher,-provisioner')).toEqual(['resizer', 'modifier', 'health-monitor'])
  })

  it('PLUS-5 selects the modifier with the resizer, because external-resizer does the work of both', () => {
    expect(listEnabled('resizer')).toEqual(['resizer', 'modifier'])
    expect(listEnabled('-resizer')).toEqual(['provisioner', 'attacher', 'health-monitor'])
    expect(listEnabled('resizer,-modifier')).toEqual(['resizer'])
    expect(listEnabled('modifier')).toEqual(['modifier'])
  })

  it('rejects unknown names, and a list that excludes all controllers', () => {
    expect(() => parseControllers('snapshotter')).toThrow(/unknown controller "snapshotter".*provisioner, resizer/)
    expect(() => parseControllers('-*')).toThrow(/unknown controller "-\*"/)
    expect(() => parseControllers('')).toThrow(/unknown controller ""/)
    expect(() => parseControllers('constructor')).toThrow(/unknown controller "constructor"/)
    expect(() => parseControllers('attacher,-attacher')).toThrow(/excludes all controllers/)
  })
})

describe('the controllers of a driver', () => {
  it('PLUS-5 are those whose capabilities it has, and the attacher', () => {
    expect(listSelected('*', aDriver(['CREATE_DELETE_VOLUME']))).toEqual(['provisioner', 'attacher'])
    expect(listSelected('*', aDriver(['EXPAND_VOLUME']))).toEqual(['resizer', 'modifier', 'attacher'])
    expect(listSelected('*', aDriver([], []))).toEqual(['attacher'])
    const monitoredDriver = aDriver(['VOLUME_CONDITION', 'GET_VOLUME'])
    expect(listSelected('*', monitoredDriver)).toEqual(['attacher', 'health-monitor'])
  })

  it('cannot be selected if the driver lacks a capability for a named one, or supports none of them', () => {
    expect(() => listSelected('provisioner', aDriver(['EXPAND_VOLUME']))).toThrow(
      /^--controllers provisioner: the CSI driver disks\.example\.com cannot create volumes.*CREATE_DELETE_VOLUME/,
    )
    expect(() => listSelected('health-monitor', aDriver(['GET_VOLUME']))).toThrow(/needs VOLUME_CONDITION/)
    expect(() => listSelected('resizer', aDriver([]))).toThrow(/neither EXPAND_VOLUME nor MODIFY_VOLUME/)
    expect(() => listSelected('modifier', aDriver(['MODIFY_VOLUME'], []))).toThrow(
      /does not report .* CONTROLLER_SERVICE/,
    )
    expect(() => listSelected('-attacher', aDriver([]))).toThrow(/has no capability/)
  })
})
