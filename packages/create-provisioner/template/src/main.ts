// Runs the provisioner until SIGTERM or SIGINT. --help lists the flags.
import { resolve } from 'node:path'
import { runProvisioner } from '@stowage/provisioner'
import { createDirectoryProvisioner } from './provisioner.js'

await runProvisioner(createDirectoryProvisioner(resolve(process.env.VOLUMES_ROOT ?? 'volumes')))
