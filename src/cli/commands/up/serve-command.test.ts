import { expect, it } from 'vitest'
import { socketNotes } from './serve-command.ts'

it('SYS-12 socketNotes explains how to start a missing driver and how to register a running one', () => {
  expect(socketNotes(['/nonexistent-stowage/csi.sock'])).toEqual([
    expect.stringMatching(/there is no socket at \/nonexistent-stowage\/csi\.sock; .*Check the path/),
  ])
  expect(socketNotes([`unix://${process.cwd()}`])).toEqual([expect.stringContaining('stowage node --driver-socket')])
})
