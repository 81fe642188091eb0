// Child process of the restore test, with a directory and an archive as arguments: restores the archive to the directory, prints
// `commit` after every commit, and `restored` at the end.
import { createReadStream } from 'node:fs'
import { restoreStore } from '../backup/restore-store.ts'

const [dir = '', archive = ''] = process.argv.slice(2)
await restoreStore({
  dir,
  archives: [{ name: archive, chunks: createReadStream(archive) }],
  onCommit: () => console.log('commit'),
})
console.log('restored')
