import fc from 'fast-check'
import { expect, it } from 'vitest'
import { agentPaths } from './paths.ts'
import { formatVolData, parseVolData } from './vol-data.ts'

it('SYS-7 reads back a record with any volume handle', () => {
  const text = fc.string({ minLength: 1 })
  fc.assert(
    fc.property(text, text, text, (volumeHandle, driverName, specVolID) => {
      const data = { volumeHandle, driverName, specVolID, volumeLifecycleMode: 'Persistent' as const }
      expect(parseVolData(formatVolData(data))).toEqual(data)
    }),
  )
})

it('SYS-7 rejects truncated and foreign files', () => {
  const whole = formatVolData({ volumeHandle: 'h', driverName: 'd' }).trimEnd()
  for (let length = 0; length < whole.length; length++) expect(parseVolData(whole.slice(0, length))).toBeUndefined()
  for (const other of ['null', '[]', '"x"', '{}', '{"volumeHandle":1,"driverName":"d"}', '{"driverName":"d"}']) {
    expect(parseVolData(other)).toBeUndefined()
  }
  fc.assert(fc.property(fc.string(), (text) => void parseVolData(text)))
})

it('SYS-7 rejects names that leave their directory', () => {
  const paths = agentPaths('/root')
  for (const name of ['', '.', '..', 'a/b', '../x', '/etc', 'a\0']) {
    expect(() => paths.csiVolume('u', name)).toThrow(/cannot be the name of a file/)
    expect(() => paths.pod(name)).toThrow(/cannot be the name of a file/)
  }
  expect(paths.staging('d', '../../etc')).toMatch(/^\/root\/plugins\/kubernetes.io\/csi\/d\/[0-9a-f]{64}\/globalmount$/)
})
