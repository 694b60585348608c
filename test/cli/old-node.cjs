/*
 * Loaded before a program, makes it believe that it runs on the Node that SHIPMATE_FAKE_NODE names.
 */
'use strict'
var versions = Object.assign({}, process.versions, { node: process.env.SHIPMATE_FAKE_NODE })
Object.defineProperty(process, 'versions', { value: versions })
